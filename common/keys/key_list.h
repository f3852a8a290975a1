#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "common/keys/key.h"
#include "common/result.h"

namespace berth::keys {

enum class KeyRole : std::uint8_t { kClient, kAdmin };

// "client", "admin"; and back.
std::string_view role_name(KeyRole role);
std::optional<KeyRole> role_from_name(std::string_view name);

// One key of the file.
struct Key {
  std::string name;  // [A-Za-z0-9._-]{1,64}
  KeyRole role = KeyRole::kClient;
  std::string group{};  // the tenants of a group are one; like a name, or empty: the key is its own
  KeyHash hash{};

  bool operator==(const Key&) const = default;
};

// What is wrong with a line of a file.
struct ListProblem {
  std::uint32_t line = 0;
  std::string message;  // what was expected, what was found; never a hash
};

// The keys of a file with the lines that they stand on, so that comments and blank lines stay where
// they are when a key comes or goes. A value; any thread.
//
//   # name:role:tenant_group:hash
//   alice:client:team-a:64 hexadecimal digits
class KeyList {
 public:
  static constexpr std::size_t kMaxKeys = 4096;
  static constexpr std::size_t kMaxBytes = 1U << 20;

  // Takes the whole or nothing: a line that cannot be read could be the one that was to revoke a
  // key. Errors: every line that is wrong, at most 50.
  static tl::expected<KeyList, std::vector<ListProblem>> parse(std::string_view text);

  [[nodiscard]] std::vector<Key> keys() const;
  [[nodiscard]] std::string text() const;

  // Puts it behind the last line. Errors: kInvalidArgument (name, group), kConflict (a key of this
  // name or hash is there, or too many).
  Status add(const Key& key);
  // Errors: kNotFound, with names that are near.
  Status remove(std::string_view name);

 private:
  struct Line {
    std::string text;
    std::optional<Key> key;
  };
  std::vector<Line> lines_;
};

// Why `name` cannot be the name of a key or group; nothing where it can.
std::optional<std::string> check_key_name(std::string_view name);

}  // namespace berth::keys
