#include "base/hash.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace evenkeel::base {
namespace {

constexpr std::uint32_t kCastagnoli = 0x82f63b78;  // the polynomial, bits reversed

using CrcTables = std::array<std::array<std::uint32_t, 256>, 8>;

// tables[k][b]: the CRC of byte b followed by k zero bytes, so that eight bytes cost eight look-ups and no
// loop.
constexpr CrcTables make_tables() {
  CrcTables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kCastagnoli : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}
constexpr CrcTables kTables = make_tables();

std::uint32_t step_table(std::uint32_t crc, unsigned char byte) {
  return (crc >> 8) ^ kTables[0][(crc ^ byte) & 0xff];
}

std::uint32_t crc_portable(std::uint32_t crc, const unsigned char* data, std::size_t size) {
  for (; size >= 8; data += 8, size -= 8) {
    const std::uint32_t low = crc ^ (std::uint32_t{data[0]} | std::uint32_t{data[1]} << 8 |
                                     std::uint32_t{data[2]} << 16 | std::uint32_t{data[3]} << 24);
    crc = kTables[7][low & 0xff] ^ kTables[6][(low >> 8) & 0xff] ^ kTables[5][(low >> 16) & 0xff] ^
          kTables[4][low >> 24] ^ kTables[3][data[4]] ^ kTables[2][data[5]] ^ kTables[1][data[6]] ^
          kTables[0][data[7]];
  }
  for (; size > 0; ++data, --size) crc = step_table(crc, *data);
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t crc_sse42(std::uint32_t crc, const unsigned char* data,
                                                          std::size_t size) {
  std::uint64_t wide = crc;
  for (; size >= 8; data += 8, size -= 8) {
    std::uint64_t word;
    std::memcpy(&word, data, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  crc = static_cast<std::uint32_t>(wide);
  for (; size > 0; ++data, --size) crc = _mm_crc32_u8(crc, *data);
  return crc;
}
#endif

using CrcFunction = std::uint32_t (*)(std::uint32_t, const unsigned char*, std::size_t);

CrcFunction pick_crc() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return crc_sse42;
#endif
  return crc_portable;
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes, std::uint32_t seed) {
  static const CrcFunction function = pick_crc();
  return ~function(~seed, bytes_of(bytes), bytes.size());
}

std::uint32_t crc32c_portable(std::string_view bytes, std::uint32_t seed) {
  return ~crc_portable(~seed, bytes_of(bytes), bytes.size());
}

std::string sha256_hex(std::string_view bytes) {
  std::string digest(32, '\0');
  unsigned length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()), &length,
                 EVP_sha256(), nullptr) != 1 ||
      length != digest.size()) {
    std::abort();  // only without memory, or with a broken OpenSSL: no hash may ever be made up
  }
  return to_hex(digest);
}

std::string hmac_sha256(std::string_view key, std::string_view message) {
  std::string digest(32, '\0');
  unsigned length = 0;
  // An empty key must still be a pointer: OpenSSL reads null as "the key of the call before".
  const void* key_bytes = key.empty() ? "" : key.data();
  if (HMAC(EVP_sha256(), key_bytes, static_cast<int>(key.size()), bytes_of(message), message.size(),
           reinterpret_cast<unsigned char*>(digest.data()), &length) == nullptr ||
      length != digest.size()) {
    std::abort();
  }
  return digest;
}

bool equal_secrets(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string to_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const unsigned char byte : bytes) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

std::string to_base64(std::string_view bytes) {
  // EVP_EncodeBlock writes a terminating NUL behind the text.
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes_of(bytes),
                                     static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  std::size_t done = 0;
  while (done < count) {
    const ssize_t got = getrandom(bytes.data() + done, count - done, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) std::abort();  // keys must never be made of anything else
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

std::uint64_t mix64(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

}  // namespace evenkeel::base
