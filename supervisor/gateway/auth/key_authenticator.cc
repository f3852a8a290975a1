#include "supervisor/gateway/auth/key_authenticator.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "common/keys/key.h"
#include "common/text.h"

namespace berth::gateway {
namespace {

// The token of "Bearer TOKEN", the scheme in any case (RFC 6750).
std::optional<std::string_view> bearer_of(std::string_view header) {
  constexpr std::string_view kScheme = "bearer";
  if (header.size() <= kScheme.size() || header[kScheme.size()] != ' ') return std::nullopt;
  if (lowered(header.substr(0, kScheme.size())) != kScheme) return std::nullopt;
  const std::size_t begin = header.find_first_not_of(' ', kScheme.size());
  if (begin == std::string_view::npos) return std::string_view();
  return header.substr(begin, header.find_last_not_of(" \t") - begin + 1);
}

// Null where no key of the list is it.
const keys::Key* find_key(const std::vector<keys::Key>& list, std::string_view presented) {
  const keys::KeyHash hash = keys::hash_of(presented);
  const keys::Key* found = nullptr;
  for (const keys::Key& key : list) {
    if (keys::same_hash(key.hash, hash)) found = &key;
  }
  return found;
}

// Of a key's hash: which of the keys of that name it is. Never 0.
std::uint64_t mark_of(const keys::KeyHash& hash) {
  std::uint64_t mark = 0;
  std::memcpy(&mark, hash.data(), sizeof mark);
  return std::max<std::uint64_t>(mark, 1);
}

core::Caller caller_of(const keys::Key& key) {
  return {.role = key.role == keys::KeyRole::kAdmin ? core::Role::kAdmin : core::Role::kClient,
          .entitled = true,
          .tenant = key.group.empty() ? "key:" + key.name : "group:" + key.group,
          .key = key.name,
          .key_mark = mark_of(key.hash)};
}

// Who comes without a key.
Result<core::Caller> caller_of(const Peer& peer, const Presented& presented,
                               const AuthRules& rules) {
  core::Caller caller;
  if (peer.uid) {
    caller.role = peer.admin ? core::Role::kAdmin : core::Role::kClient;
    caller.entitled = true;
    caller.tenant = "uid:" + std::to_string(*peer.uid);
    return caller;
  }
  if (peer.loopback) {
    caller.entitled = presented.loopback_host && !presented.foreign_origin && !presented.forwarded;
    return caller;
  }
  if (rules.anonymous) {
    caller.unnamed = true;
    return caller;
  }
  return fail(Reason::kUnauthenticated,
              rules.uses_keys ? "This server takes requests over the network with a key only: send "
                                "it as `Authorization: Bearer KEY`."
                              : "This server takes no requests over the network: it has no keys.");
}

}  // namespace

void KeyAuthenticator::use(AuthRules rules) {
  auto made = std::make_shared<const AuthRules>(std::move(rules));
  const std::lock_guard lock(mutex_);
  rules_.swap(made);
}

std::shared_ptr<const AuthRules> KeyAuthenticator::rules() const {
  const std::lock_guard lock(mutex_);
  return rules_;
}

Result<core::Caller> KeyAuthenticator::authenticate(const Peer& peer,
                                                    const Presented& presented) const {
  const std::shared_ptr<const AuthRules> rules = this->rules();
  if (presented.authorization.empty() || !rules->uses_keys) {
    return caller_of(peer, presented, *rules);
  }
  const std::optional<std::string_view> token = bearer_of(presented.authorization);
  if (!token) {
    return fail(Reason::kUnauthenticated,
                "The header Authorization must have the form `Bearer KEY`.");
  }
  if (const keys::Key* key = find_key(rules->keys, *token)) return caller_of(*key);
  return fail(Reason::kUnauthenticated, "This key is not known, or not any more.");
}

Status KeyAuthenticator::recheck(const core::Caller& caller) const {
  const std::shared_ptr<const AuthRules> rules = this->rules();
  if (caller.unnamed && !rules->anonymous) {
    return fail(Reason::kUnauthenticated,
                "This server takes no requests over the network without a key any more.");
  }
  if (caller.key.empty()) return {};
  const auto same = [&caller](const keys::Key& key) {
    return key.name == caller.key && mark_of(key.hash) == caller.key_mark;
  };
  const auto key = std::ranges::find_if(rules->keys, same);
  if (key == rules->keys.end()) {
    return fail(Reason::kUnauthenticated, "This key is not known any more.");
  }
  const core::Caller now = caller_of(*key);
  if (now.role == caller.role && now.tenant == caller.tenant) return {};
  return fail(Reason::kUnauthenticated,
              "The role or the group of this key was changed: ask again with it.");
}

}  // namespace berth::gateway
