#include "base/hash.h"

#include <gtest/gtest.h>

#include <set>

namespace evenkeel::base {
namespace {

TEST(Hash, crc32c_matches_the_published_values) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);    // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);  // RFC 3720, B.4
}

TEST(Hash, crc32c_goes_on_from_any_split_and_the_table_agrees_with_the_instruction) {
  const std::string bytes = random_bytes(257);
  const std::uint32_t whole = crc32c(bytes);
  EXPECT_EQ(crc32c_portable(bytes), whole);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    const std::string_view head(bytes.data(), cut), tail(bytes.data() + cut, bytes.size() - cut);
    ASSERT_EQ(crc32c(tail, crc32c(head)), whole) << cut;
    ASSERT_EQ(crc32c_portable(tail, crc32c_portable(head)), whole) << cut;
  }
}

TEST(Hash, sha256_matches_the_published_values) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Hash, hmac_matches_rfc_4231) {
  EXPECT_EQ(to_hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(to_hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(to_hex(hmac_sha256("", "")), "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST(Hash, secrets_are_equal_only_byte_for_byte) {
  EXPECT_TRUE(equal_secrets("", ""));
  EXPECT_TRUE(equal_secrets("key", "key"));
  EXPECT_FALSE(equal_secrets("key", "kex"));
  EXPECT_FALSE(equal_secrets("key", "keys"));
}

TEST(Hash, base64_pads_as_rfc_4648_says) {
  EXPECT_EQ(to_base64(""), "");
  EXPECT_EQ(to_base64("f"), "Zg==");
  EXPECT_EQ(to_base64("fo"), "Zm8=");
  EXPECT_EQ(to_base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(to_base64(std::string("\0\xff", 2)), "AP8=");
}

TEST(Hash, random_bytes_differ_and_have_the_length_asked_for) {
  EXPECT_EQ(random_bytes(0).size(), 0u);
  EXPECT_EQ(random_bytes(1000).size(), 1000u);
  EXPECT_NE(random_bytes(32), random_bytes(32));
}

TEST(Hash, mix64_is_a_fixed_function_without_small_collisions) {
  EXPECT_EQ(mix64(0), 0xe220a8397b1dcdafULL);  // first output of splitmix64 seeded with 0
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 10000; ++i) seen.insert(mix64(i));
  EXPECT_EQ(seen.size(), 10000u);
}

}  // namespace
}  // namespace evenkeel::base
