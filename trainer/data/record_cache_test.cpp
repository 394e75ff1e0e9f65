#include "trainer/data/record_cache.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>
#include <vector>

namespace evenkeel::trainer {
namespace {

using contract::CacheMode;

std::unique_ptr<RecordCache> cache_of(CacheMode mode, std::uint64_t limit_bytes = 1 << 20) {
  return make_record_cache({mode, limit_bytes, ::testing::TempDir(), "train"});
}

TEST(RecordCache, gives_back_what_it_was_given) {
  for (const CacheMode mode : {CacheMode::kMemory, CacheMode::kDisk}) {
    const auto cache = cache_of(mode);
    ASSERT_NE(cache, nullptr);
    EXPECT_FALSE(cache->find(5).has_value());
    cache->keep(5, 3, 1000, std::string("a\0b", 3));
    cache->keep(6, 4, 2000, "");
    cache->keep(5, 9, 9, "other");  // the first one stays
    const auto five = cache->find(5);
    ASSERT_TRUE(five.has_value());
    EXPECT_EQ(five->label, 3);
    EXPECT_EQ(five->stored_bytes, 1000u);
    EXPECT_EQ(five->bytes, std::string("a\0b", 3));
    EXPECT_EQ(cache->find(6)->bytes, "");
  }
  EXPECT_EQ(cache_of(CacheMode::kNone), nullptr);
}

TEST(RecordCache, stops_at_its_limit) {
  for (const CacheMode mode : {CacheMode::kMemory, CacheMode::kDisk}) {
    const auto cache = cache_of(mode, 1000);
    for (std::int64_t id = 0; id < 10; ++id) cache->keep(id, 1, 1, std::string(200, 'x'));
    EXPECT_TRUE(cache->find(2).has_value());
    EXPECT_FALSE(cache->find(3).has_value());
    EXPECT_LE(cache->held_bytes(), 1000u);
  }
}

TEST(RecordCache, many_threads_find_whole_records_only) {
  for (const CacheMode mode : {CacheMode::kMemory, CacheMode::kDisk}) {
    const auto cache = cache_of(mode);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&cache] {
        for (std::int64_t id = 0; id < 500; ++id) {
          const std::string bytes(100, static_cast<char>(id));
          if (const auto kept = cache->find(id)) {
            EXPECT_EQ(kept->bytes, bytes);
          } else {
            cache->keep(id, static_cast<std::int32_t>(id), 1, bytes);
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::int64_t id = 0; id < 500; ++id) EXPECT_EQ(cache->find(id)->label, id);
  }
}

TEST(RecordCache, the_file_has_no_name) {
  const std::string folder = ::testing::TempDir() + "/cache-" + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  const auto cache = make_record_cache({CacheMode::kDisk, 1 << 20, folder, "train"});
  cache->keep(1, 1, 1, "x");
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
  EXPECT_EQ(cache->find(1)->bytes, "x");
}

// The system refuses further bytes, as a full disk does.
TEST(RecordCache, a_full_disk_turns_it_off_and_keeps_what_is_there) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const auto cache = cache_of(CacheMode::kDisk);
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  for (std::int64_t id = 0; id < 10; ++id) cache->keep(id, 1, 1, std::string(1000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(cache->find(3)->bytes, std::string(1000, 'x'));
  EXPECT_FALSE(cache->find(4).has_value());
  cache->keep(5, 1, 1, "x");  // there is room again, but it stays off
  EXPECT_FALSE(cache->find(5).has_value());
}

}  // namespace
}  // namespace evenkeel::trainer
