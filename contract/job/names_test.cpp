#include "contract/job/names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace evenkeel::contract {
namespace {

constexpr int kDnsLabel = 63;
constexpr int kLastRank = 4095;
constexpr char kUid[] = "0f8fad5b-d9cb-469f-a165-70867728950e";

// The longest of all names that must be a DNS label, for a job name of `length` characters.
std::size_t longest_child(int length) {
  const std::string job(length, 'x');
  return std::max(
      {host_name(job, Role::kWorker, kLastRank).size(), host_name(job, Role::kCoordinator, 0).size(),
       host_name(job, Role::kReducer, kLastRank).size(), host_name(job, Role::kServer, kLastRank).size(),
       service_name(job).size(), secret_name(job, kUid).size(), job.size()});
}

TEST(Names, the_limit_of_a_job_name_is_what_its_longest_child_leaves) {
  int longest = 0;
  for (int length = 1; length <= kDnsLabel; ++length) {
    if (longest_child(length) <= kDnsLabel) longest = length;
  }
  EXPECT_EQ(longest, kMaxJobNameLength);
}

TEST(Names, a_pod_name_is_its_host_name_and_the_incarnation) {
  EXPECT_EQ(host_name("a", Role::kWorker, 3), "a-worker-3");
  EXPECT_EQ(pod_name("a", Role::kWorker, 3, 12), "a-worker-3-12");
  EXPECT_EQ(pod_name("a", Role::kCoordinator, 0, 1), "a-coordinator-0-1");
}

TEST(Names, a_pod_name_is_read_back_and_a_stranger_is_not) {
  const PodIdentity identity{Role::kWorker, 3, 12};
  EXPECT_EQ(identity_text(identity), "worker-3-12");
  EXPECT_EQ(parse_pod_name("a-b", pod_name("a-b", Role::kWorker, 3, 12)), identity);
  EXPECT_EQ(parse_identity("coordinator-0-1"), (PodIdentity{Role::kCoordinator, 0, 1}));
  for (const char* stranger :
       {"", "a", "a-worker-3", "b-worker-3-1", "a-worker-3-", "a-worker--3-1", "a-worker-03-1",
        "a-worker-3-1x", "a-chief-3-1", "a-worker-99999999999-1", "a-b-worker-3-1", "-3-1"})
    EXPECT_FALSE(parse_pod_name("a", stranger).has_value()) << stranger;
}

TEST(Names, pod_and_config_map_names_fit_an_object_name_for_any_counter) {
  const std::string job(kMaxJobNameLength, 'x');
  EXPECT_LE(pod_name(job, Role::kReducer, kLastRank, INT64_MAX).size(), 253u);
  EXPECT_LE(config_map_name(job, INT64_MAX).size(), 253u);
  EXPECT_LE(wanted_map_name(job, INT64_MAX).size(), 253u);
}

TEST(Names, every_helper_has_its_own_name) {
  EXPECT_EQ(service_name("a"), "a");
  EXPECT_EQ(config_map_name("a", 2), "a-config-2");
  EXPECT_EQ(wanted_map_name("a", 2), "a-wanted-2");
  EXPECT_EQ(secret_name("a", kUid), "a-key-0f8fad5b");
  EXPECT_EQ(dns_name("a", "team", Role::kCoordinator, 0), "a-coordinator-0.a.team.svc");
}

TEST(Names, a_role_is_read_back_and_a_stranger_refused) {
  for (Role role : {Role::kWorker, Role::kCoordinator, Role::kReducer, Role::kServer}) {
    ASSERT_TRUE(parse_role(role_name(role)).ok());
    EXPECT_EQ(*parse_role(role_name(role)), role);
  }
  EXPECT_EQ(parse_role("chief").error().code, base::ErrorCode::kInvalidInput);
}

}  // namespace
}  // namespace evenkeel::contract
