#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"

namespace berth::keys {

// An API key is 256 random bits behind a prefix by which people and scanners of leaks know it:
// "berth-" and 43 characters of base64url. Only its SHA-256 is kept. A slow hash (bcrypt, scrypt)
// would gain nothing: it protects passwords, which can be guessed; 2^256 keys cannot be, and every
// request would pay for it.
inline constexpr std::string_view kKeyPrefix = "berth-";

using KeyHash = std::array<std::uint8_t, 32>;

// A new key. Errors: kInternal, where the system has no random numbers.
Result<std::string> make_key();

// SHA-256 of the text as it is.
KeyHash hash_of(std::string_view key);

// Takes as long whether they differ early, late or not at all.
bool same_hash(const KeyHash& a, const KeyHash& b);

// 64 hexadecimal digits in lower case; and back, in either case.
std::string to_hex(const KeyHash& hash);
std::optional<KeyHash> hash_from_hex(std::string_view text);

}  // namespace berth::keys
