#include "trainer/launch/exposition.h"

#include <gtest/gtest.h>

namespace evenkeel::trainer {
namespace {

std::string page_of(const std::string& rank) {
  return "# HELP evenkeel_replica_step Steps.\n"
         "# TYPE evenkeel_replica_step gauge\n"
         "evenkeel_replica_step{rank=\"" + rank + "\"} 1" + rank + "\n"
         "# HELP process_threads Threads of this process.\n"
         "# TYPE process_threads gauge\n"
         "process_threads 4\n";
}

TEST(MergePages, each_family_comes_once_with_the_samples_of_all_ranks) {
  EXPECT_EQ(merge_pages({{2, page_of("2")}, {3, page_of("3")}}),
            "# HELP evenkeel_replica_step Steps.\n"
            "# TYPE evenkeel_replica_step gauge\n"
            "evenkeel_replica_step{rank=\"2\"} 12\n"
            "evenkeel_replica_step{rank=\"3\"} 13\n"
            "# HELP process_threads Threads of this process.\n"
            "# TYPE process_threads gauge\n"
            "process_threads{rank=\"2\"} 4\n"
            "process_threads{rank=\"3\"} 4\n");
}

TEST(MergePages, histograms_stay_together_and_families_of_one_rank_only_are_kept) {
  const std::string histogram =
      "# HELP h Times.\n# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 3\nh_count 2\n";
  EXPECT_EQ(merge_pages({{0, ""}, {1, "# HELP a A.\n# TYPE a counter\na 1\n"}, {2, histogram}}),
            "# HELP a A.\n# TYPE a counter\na 1\n" + histogram);
}

TEST(MergePages, a_label_value_may_hold_anything_and_labels_of_processes_stay) {
  const std::string odd = "# TYPE x gauge\nx{a=\"b } # TYPE \\\" c\"} 1\n";
  EXPECT_EQ(merge_pages({{0, odd}}), odd);
  EXPECT_EQ(merge_pages({{4, "# TYPE process_x gauge\nprocess_x{a=\"b c\"} 1\n"}}),
            "# TYPE process_x gauge\nprocess_x{rank=\"4\",a=\"b c\"} 1\n");
}

TEST(MergePages, of_two_types_the_first_one_stays) {
  EXPECT_EQ(merge_pages({{0, "# TYPE x gauge\nx 1\n"}, {1, "# TYPE x counter\nx 2\n# TYPE y gauge\ny 3\n"}}),
            "# TYPE x gauge\nx 1\n# TYPE y gauge\ny 3\n");
}

TEST(MergePages, a_page_that_was_cut_gives_what_is_there) {
  EXPECT_EQ(merge_pages({{0, "# TYPE x gauge\nx 1"}, {1, "garbage without a family\n# TYPE"}}),
            "# TYPE x gauge\nx 1\n");
  EXPECT_EQ(merge_pages({}), "");
}

}  // namespace
}  // namespace evenkeel::trainer
