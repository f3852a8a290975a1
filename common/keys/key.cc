#include "common/keys/key.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>
#include <charconv>

#include "common/base64.h"

namespace berth::keys {
namespace {

constexpr std::size_t kKeyBytes = 32;

// RFC 4648, section 5, without padding.
std::string base64url(const std::array<std::uint8_t, kKeyBytes>& bytes) {
  std::string out;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes as text
  append_base64(out, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  out.resize(out.find('='));
  std::replace(out.begin(), out.end(), '+', '-');
  std::replace(out.begin(), out.end(), '/', '_');
  return out;
}

}  // namespace

Result<std::string> make_key() {
  std::array<std::uint8_t, kKeyBytes> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    return fail(Reason::kInternal, "The system gives no random numbers, so no key can be made.");
  }
  std::string key = std::string(kKeyPrefix) + base64url(bytes);
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return key;
}

KeyHash hash_of(std::string_view key) {
  KeyHash hash{};
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): how OpenSSL takes bytes
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), hash.data());
  return hash;
}

bool same_hash(const KeyHash& a, const KeyHash& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string to_hex(const KeyHash& hash) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : hash) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

std::optional<KeyHash> hash_from_hex(std::string_view text) {
  KeyHash hash{};
  if (text.size() != 2 * hash.size()) return std::nullopt;
  for (std::size_t i = 0; i < hash.size(); ++i) {
    const char* const digits = text.data() + 2 * i;
    if (std::from_chars(digits, digits + 2, hash.at(i), 16).ptr != digits + 2) return std::nullopt;
  }
  return hash;
}

}  // namespace berth::keys
