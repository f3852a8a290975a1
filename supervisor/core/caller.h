#pragma once

#include <cstdint>
#include <string>

namespace berth::core {

// What a caller may do. Admins may do everything.
enum class Role : std::uint8_t { kClient, kAdmin };

// Who makes a request, as far as the door that he came through could prove it.
struct Caller {
  Role role = Role::kClient;
  // Whether refusals may tell him what the server does besides (I11, I12).
  bool entitled = false;
  // Whose requests and sessions he shares: the key or its tenant group, "uid:1000", or the one
  // shared "anonymous". Never empty. Another kind of tenant never has the same text.
  std::string tenant = "anonymous";
  // The key's name, where he came with one: what its limits count.
  std::string key{};
  // Of that key itself: tells it from another one that gets its name later. 0: no key.
  std::uint64_t key_mark = 0;
  // Whether he came over the network without a key, as long as the settings let such in.
  bool unnamed = false;
  // By which protocol: grpc | http. For records alone.
  std::string door{};

  [[nodiscard]] bool admin() const { return role == Role::kAdmin; }
};

}  // namespace berth::core
