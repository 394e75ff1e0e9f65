#include "trainer/loop/cgroup.h"

#include <gtest/gtest.h>

#include "base/files_fake.h"

namespace evenkeel::trainer {
namespace {

TEST(Cgroup, version_2_in_a_container) {
  base::FakeFiles files;
  files.put("/proc/self/cgroup", "0::/\n");
  files.put("/sys/fs/cgroup/cpu.max", "150000 100000\n");
  files.put("/sys/fs/cgroup/cpu.stat", "usage_usec 5\nnr_periods 200\nnr_throttled 30\nthrottled_usec 9\n");
  files.put("/sys/fs/cgroup/memory.max", "1073741824\n");
  EXPECT_DOUBLE_EQ(read_cpu_limit(files).cores, 1.5);
  EXPECT_EQ(read_cpu_throttling(files)->periods, 200u);
  EXPECT_EQ(read_cpu_throttling(files)->throttled, 30u);
  EXPECT_EQ(read_memory_limit(files).bytes, std::uint64_t{1} << 30);
}

TEST(Cgroup, the_tightest_of_nested_quotas_counts) {
  base::FakeFiles files;
  files.put("/proc/self/cgroup", "0::/kubepods/pod1/c1\n");
  files.put("/sys/fs/cgroup/kubepods/pod1/c1/cpu.max", "max 100000\n");
  files.put("/sys/fs/cgroup/kubepods/pod1/cpu.max", "25000 50000\n");
  files.put("/sys/fs/cgroup/kubepods/cpu.max", "800000 100000\n");
  files.put("/sys/fs/cgroup/kubepods/pod1/cpu.stat", "nr_periods 7\nnr_throttled 1\n");
  const CpuLimit limit = read_cpu_limit(files);
  EXPECT_DOUBLE_EQ(limit.cores, 0.5);
  EXPECT_EQ(limit.source, "cgroup v2 /sys/fs/cgroup/kubepods/pod1");
  EXPECT_EQ(read_cpu_throttling(files)->periods, 7u);
}

TEST(Cgroup, version_1_with_a_path_that_only_the_host_knows) {
  base::FakeFiles files;
  files.put("/proc/self/cgroup",
            "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n");
  files.put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n");
  files.put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  files.put("/sys/fs/cgroup/cpu,cpuacct/cpu.stat", "nr_periods 10\nnr_throttled 4\nthrottled_time 1\n");
  files.put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  files.put("/proc/meminfo", "MemTotal:       2048 kB\nMemFree: 1 kB\n");
  EXPECT_DOUBLE_EQ(read_cpu_limit(files).cores, 2.0);
  EXPECT_EQ(read_cpu_throttling(files)->throttled, 4u);
  EXPECT_EQ(read_memory_limit(files).bytes, 2048u * 1024);
  EXPECT_EQ(read_memory_limit(files).source, "machine");
}

TEST(Cgroup, no_quota_is_no_limit) {
  base::FakeFiles files;
  files.put("/proc/self/cgroup", "4:cpu:/a\n0::/a\n");
  files.put("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
  files.put("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(read_cpu_limit(files).cores, 0);
  EXPECT_EQ(read_cpu_limit(files).source, "machine");
  EXPECT_FALSE(read_cpu_throttling(files).has_value());
  base::FakeFiles none;
  EXPECT_EQ(read_cpu_limit(none).cores, 0);
  EXPECT_EQ(read_memory_limit(none).bytes, 0u);
}

TEST(Cgroup, free_memory_is_what_limit_and_machine_leave) {
  base::FakeFiles files;
  files.put("/proc/self/cgroup", "0::/\n");
  files.put("/proc/meminfo", "MemTotal:       8192 kB\nMemFree: 1 kB\nMemAvailable:   4096 kB\n");
  EXPECT_EQ(read_free_memory(files), 4096u * 1024);
  files.put("/sys/fs/cgroup/memory.max", "3000000\n");
  files.put("/sys/fs/cgroup/memory.current", "2500000\n");
  files.put("/sys/fs/cgroup/memory.stat", "anon 100\nfile 5\ninactive_file 1500000\n");
  EXPECT_EQ(read_free_memory(files), 2000000u) << "pages of files that were read are given back";
  files.put("/sys/fs/cgroup/memory.current", "5000000\n");
  EXPECT_EQ(read_free_memory(files), 0u);
  base::FakeFiles none;
  EXPECT_EQ(read_free_memory(none), 0u);
}

TEST(Cgroup, the_model_of_the_cpu) {
  base::FakeFiles files;
  EXPECT_EQ(read_cpu_model(files), "");
  files.put("/proc/cpuinfo", "processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD EPYC 7763 64-Core Processor\nflags\t: x\n");
  EXPECT_EQ(read_cpu_model(files), "AMD EPYC 7763 64-Core Processor");
  files.put("/proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n");
  EXPECT_EQ(read_cpu_model(files), "CPU implementer 0x41 part 0xd0c");
}

TEST(Cgroup, threads_are_the_floor_of_the_quota_and_at_least_one) {
  const auto threads = [](double quota, int cores, int sharers) {
    return choose_threads({quota, "cgroup"}, cores, sharers).threads;
  };
  EXPECT_EQ(threads(0.4, 64, 1), 1);
  EXPECT_EQ(threads(2.0, 64, 1), 2);
  EXPECT_EQ(threads(2.9, 64, 1), 2);
  EXPECT_EQ(threads(0, 8, 1), 8);
  EXPECT_EQ(threads(16, 8, 1), 8);
  EXPECT_EQ(threads(2, 64, 2), 1) << "two workers of one machine share the quota";
  EXPECT_EQ(threads(0, 2, 4), 1);
  EXPECT_EQ(choose_threads({2.0, "cgroup v2 /x"}, 64, 1).source, "cgroup v2 /x");
}

}  // namespace
}  // namespace evenkeel::trainer
