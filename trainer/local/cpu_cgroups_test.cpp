#include "trainer/local/cpu_cgroups.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace evenkeel::trainer {
namespace {

TEST(CpuCgroups, a_limit_is_set_read_back_and_gone_afterwards) {
  auto groups = CpuCgroups::make("/sys/fs/cgroup");
  if (!groups.ok()) GTEST_SKIP() << "no CPU cgroup can be made here: " << groups.error().message;
  const auto procs = (*groups)->limit(3, 0.25);
  ASSERT_TRUE(procs.ok()) << procs.error().message;
  EXPECT_EQ(::access(procs->c_str(), W_OK), 0);
  const auto use = (*groups)->read(3);
  ASSERT_TRUE(use);
  EXPECT_DOUBLE_EQ(use->limit_cores, 0.25);
  EXPECT_EQ(use->throttled_periods, 0u);
  EXPECT_FALSE((*groups)->read(0));
  groups->reset();
  EXPECT_NE(::access(procs->c_str(), F_OK), 0);
}

TEST(CpuCgroups, no_cgroup_is_an_error_with_a_reason) {
  const auto groups = CpuCgroups::make("/proc/none");
  ASSERT_FALSE(groups.ok());
  EXPECT_NE(groups.error().message.find("/proc/none"), std::string::npos);
}

}  // namespace
}  // namespace evenkeel::trainer
