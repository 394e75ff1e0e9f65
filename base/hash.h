// Checksums and keyed hashes. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace evenkeel::base {

// CRC-32C (Castagnoli), of "123456789" = 0xe3069283. `seed` = the CRC so far, to go on with more bytes.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t seed = 0);
// The same without the instruction of SSE 4.2: what other machines run, callable so that a test compares the
// two.
std::uint32_t crc32c_portable(std::string_view bytes, std::uint32_t seed = 0);

// Lower-case hex, 64 characters.
std::string sha256_hex(std::string_view bytes);
// 32 raw bytes.
std::string hmac_sha256(std::string_view key, std::string_view message);
// Constant time.
bool equal_secrets(std::string_view a, std::string_view b);
std::string to_hex(std::string_view bytes);
std::string to_base64(std::string_view bytes);
// Bytes of the system's random source, for keys and nonces.
std::string random_bytes(std::size_t count);

// 64-bit mix of one integer (splitmix64 finaliser): for seeds and order-independent sums of ids.
std::uint64_t mix64(std::uint64_t value);

}  // namespace evenkeel::base
