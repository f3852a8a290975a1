#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "common/keys/key_list.h"
#include "supervisor/gateway/auth/authenticator.h"

namespace berth::gateway {

// What decides who a caller is. Never changed once it is in use.
struct AuthRules {
  std::vector<keys::Key> keys{};
  // Whether a file of keys is configured. Where none is there is nothing that a key could be wrong
  // against: what clients send as one (many cannot do without) is not looked at.
  bool uses_keys = false;
  bool anonymous = false;  // network clients without a key are served
};

// The real one. Any thread; the rules are exchanged as a whole, and count for every request that
// is asked for afterwards. Lives as long as the fronts.
//
// A presented key is compared with every key of the file, in constant time each, whatever the
// comparison before gave: neither the answer nor its time tells an unknown key from one that was
// revoked, or how near it was.
class KeyAuthenticator : public Authenticator {
 public:
  void use(AuthRules rules);

  [[nodiscard]] Result<core::Caller> authenticate(const Peer& peer,
                                                  const Presented& presented) const override;

  // Whether one who was let in before would be let in now, with the same rights. Errors:
  // kUnauthenticated.
  [[nodiscard]] Status recheck(const core::Caller& caller) const;

 private:
  [[nodiscard]] std::shared_ptr<const AuthRules> rules() const;

  mutable std::mutex mutex_;  // held only to copy the pointer
  std::shared_ptr<const AuthRules> rules_ = std::make_shared<const AuthRules>();
};

}  // namespace berth::gateway
