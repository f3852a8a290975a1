#include "supervisor/gateway/auth/key_authenticator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "common/keys/key.h"

namespace berth::gateway {
namespace {

using core::Caller;
using core::Role;
using testing::HasSubstr;
using testing::Not;

constexpr Peer kNetwork{};
const Peer kLoopback{.uid = {}, .admin = false, .loopback = true};
const Presented kDirect{.authorization = {}, .loopback_host = true};

Peer unix_peer(std::uint32_t uid, bool admin) {
  return {.uid = uid, .admin = admin, .loopback = false};
}

AuthRules rules() {
  return {.keys = {{"alice", keys::KeyRole::kClient, "", keys::hash_of("berth-alice")},
                   {"bob", keys::KeyRole::kClient, "team", keys::hash_of("berth-bob")},
                   {"ops", keys::KeyRole::kAdmin, "", keys::hash_of("berth-ops")}},
          .uses_keys = true,
          .anonymous = false};
}

class KeyAuthenticatorTest : public testing::Test {
 protected:
  KeyAuthenticatorTest() { auth_.use(rules()); }

  Caller caller(const Peer& peer, const Presented& presented) {
    const Result<Caller> found = auth_.authenticate(peer, presented);
    EXPECT_TRUE(found) << found.error().message;
    return found.value_or(Caller());
  }
  Error refusal(const Peer& peer, const Presented& presented) {
    const Result<Caller> found = auth_.authenticate(peer, presented);
    EXPECT_FALSE(found);
    return found ? Error() : found.error();
  }

  KeyAuthenticator auth_;
};

TEST_F(KeyAuthenticatorTest, UnixPeersAreWhoTheKernelSays) {
  const Caller root = caller(unix_peer(0, true), {});
  EXPECT_EQ(root.role, Role::kAdmin);
  EXPECT_TRUE(root.entitled);
  EXPECT_EQ(root.tenant, "uid:0");
  const Caller user = caller(unix_peer(1000, false), {});
  EXPECT_EQ(user.role, Role::kClient);
  EXPECT_TRUE(user.entitled);
  EXPECT_EQ(user.tenant, "uid:1000");
  EXPECT_EQ(user.key, "");
}

TEST_F(KeyAuthenticatorTest, I11_DirectLoopbackIsAnEntitledClientAndNeverAnAdmin) {
  const Caller direct = caller(kLoopback, kDirect);
  EXPECT_EQ(direct.role, Role::kClient);
  EXPECT_TRUE(direct.entitled);
  EXPECT_EQ(direct.tenant, "anonymous");
}

TEST_F(KeyAuthenticatorTest, I11_LoopbackByAnotherNameOriginOrProxyIsNotEntitled) {
  for (const Presented& presented :
       {Presented{.loopback_host = false}, Presented{.loopback_host = true, .foreign_origin = true},
        Presented{.loopback_host = true, .foreign_origin = false, .forwarded = true}}) {
    const Caller client = caller(kLoopback, presented);
    EXPECT_EQ(client.role, Role::kClient);
    EXPECT_FALSE(client.entitled);
    EXPECT_EQ(client.tenant, "anonymous");
  }
}

TEST_F(KeyAuthenticatorTest, KeysGiveTheirRoleAndTenantThroughAnyDoor) {
  for (const Peer& peer : {kNetwork, kLoopback, unix_peer(1000, false), unix_peer(0, true)}) {
    const Caller alice = caller(peer, {.authorization = "Bearer berth-alice"});
    EXPECT_EQ(alice.role, Role::kClient);
    EXPECT_TRUE(alice.entitled);
    EXPECT_EQ(alice.tenant, "key:alice");
    EXPECT_EQ(alice.key, "alice");
    const Caller bob = caller(peer, {.authorization = "bearer  berth-bob "});
    EXPECT_EQ(bob.tenant, "group:team");
    EXPECT_EQ(bob.key, "bob");
    const Caller ops = caller(peer, {.authorization = "BEARER berth-ops", .forwarded = true});
    EXPECT_EQ(ops.role, Role::kAdmin);
    EXPECT_TRUE(ops.entitled);
  }
}

TEST_F(KeyAuthenticatorTest, WrongKeysAreRefusedThroughEveryDoorAndInOneSentence) {
  const Error unknown = refusal(kNetwork, {.authorization = "Bearer berth-mallory"});
  EXPECT_EQ(unknown.reason, Reason::kUnauthenticated);
  for (const Peer& peer : {kNetwork, kLoopback, unix_peer(1000, false), unix_peer(0, true)}) {
    for (const char* header : {"Bearer berth-mallory", "Bearer ", "Bearer berth-alic",
                               "Bearer berth-alice2", "Bearer  x y"}) {
      const Error error = refusal(peer, {.authorization = header, .loopback_host = true});
      EXPECT_EQ(error.reason, Reason::kUnauthenticated) << header;
      EXPECT_EQ(error.message, unknown.message) << header;
    }
    for (const char* header : {"Basic YTpi", "berth-alice", "Bearer", "Bearerberth-alice"}) {
      const Error error = refusal(peer, {.authorization = header});
      EXPECT_EQ(error.reason, Reason::kUnauthenticated) << header;
      EXPECT_THAT(error.message, HasSubstr("`Bearer KEY`"));
      EXPECT_THAT(error.message, Not(HasSubstr("alice")));
    }
  }
}

TEST_F(KeyAuthenticatorTest, RevokedKeyIsAsUnknownAsAnyOther) {
  const Error unknown = refusal(kNetwork, {.authorization = "Bearer berth-mallory"});
  AuthRules fewer = rules();
  fewer.keys.erase(fewer.keys.begin());
  auth_.use(std::move(fewer));
  const Error revoked = refusal(kNetwork, {.authorization = "Bearer berth-alice"});
  EXPECT_EQ(revoked.reason, unknown.reason);
  EXPECT_EQ(revoked.message, unknown.message);
  EXPECT_EQ(caller(kNetwork, {.authorization = "Bearer berth-bob"}).key, "bob");
}

TEST_F(KeyAuthenticatorTest, KnowsWhetherOneWhoWasLetInStillIsWhoHeWas) {
  const Caller alice = caller(kNetwork, {.authorization = "Bearer berth-alice"});
  const Caller local = caller(kLoopback, kDirect);
  const Caller root = caller(unix_peer(0, true), {});
  EXPECT_TRUE(auth_.recheck(alice));

  AuthRules changed = rules();
  changed.keys[1].role = keys::KeyRole::kAdmin;  // bob's
  auth_.use(changed);
  EXPECT_TRUE(auth_.recheck(alice));
  changed.keys[0].role = keys::KeyRole::kAdmin;
  auth_.use(changed);
  EXPECT_FALSE(auth_.recheck(alice)) << "another role";
  changed = rules();
  changed.keys[0].group = "team";
  auth_.use(changed);
  EXPECT_FALSE(auth_.recheck(alice)) << "another tenant";
  changed = rules();
  changed.keys[0].hash = keys::hash_of("berth-alice-2");
  auth_.use(changed);
  EXPECT_FALSE(auth_.recheck(alice)) << "another key of the same name";
  changed.keys.clear();
  auth_.use(changed);
  const Status gone = auth_.recheck(alice);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().reason, Reason::kUnauthenticated);
  EXPECT_TRUE(auth_.recheck(local));
  EXPECT_TRUE(auth_.recheck(root));

  changed.anonymous = true;
  auth_.use(changed);
  const Caller anonymous = caller(kNetwork, {});
  EXPECT_TRUE(auth_.recheck(anonymous));
  auth_.use(rules());
  EXPECT_FALSE(auth_.recheck(anonymous));
  EXPECT_TRUE(auth_.recheck(local));
}

TEST_F(KeyAuthenticatorTest, NetworkNeedsAKeyUnlessItMayBeAnonymous) {
  const Error refused = refusal(kNetwork, kDirect);
  EXPECT_EQ(refused.reason, Reason::kUnauthenticated);
  EXPECT_THAT(refused.message, HasSubstr("Authorization: Bearer KEY"));
  AuthRules open = rules();
  open.anonymous = true;
  auth_.use(open);
  const Caller anonymous = caller(kNetwork, kDirect);
  EXPECT_EQ(anonymous.role, Role::kClient);
  EXPECT_FALSE(anonymous.entitled);
  EXPECT_EQ(anonymous.tenant, "anonymous");
  EXPECT_EQ(refusal(kNetwork, {.authorization = "Bearer berth-mallory"}).reason,
            Reason::kUnauthenticated)
      << "a wrong key is never anonymous";
  auth_.use({});
  EXPECT_THAT(refusal(kNetwork, {}).message, HasSubstr("has no keys"));
}

TEST_F(KeyAuthenticatorTest, WithoutAKeyFileNoKeyIsLookedAt) {
  auth_.use({});
  const Caller local = caller(kLoopback, {.authorization = "Bearer none", .loopback_host = true});
  EXPECT_TRUE(local.entitled);
  EXPECT_EQ(local.tenant, "anonymous");
  EXPECT_EQ(local.key, "");
  EXPECT_EQ(refusal(kNetwork, {.authorization = "Bearer none"}).reason, Reason::kUnauthenticated);
}

TEST_F(KeyAuthenticatorTest, TenantsOfDifferentKindsAreNeverOne) {
  AuthRules odd;
  odd.uses_keys = true;
  odd.keys = {{"1000", keys::KeyRole::kClient, "", keys::hash_of("a")},
              {"x", keys::KeyRole::kClient, "1000", keys::hash_of("b")},
              {"anonymous", keys::KeyRole::kClient, "", keys::hash_of("c")}};
  auth_.use(odd);
  const std::vector<std::string> tenants = {caller(kNetwork, {.authorization = "Bearer a"}).tenant,
                                            caller(kNetwork, {.authorization = "Bearer b"}).tenant,
                                            caller(kNetwork, {.authorization = "Bearer c"}).tenant,
                                            caller(unix_peer(1000, false), {}).tenant,
                                            caller(kLoopback, kDirect).tenant};
  EXPECT_THAT(tenants, testing::ElementsAre("key:1000", "group:1000", "key:anonymous", "uid:1000",
                                            "anonymous"));
}

TEST_F(KeyAuthenticatorTest, RulesAreExchangedUnderRequests) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> asking;
  for (int i = 0; i < 3; ++i) {
    asking.emplace_back([&] {
      while (!stop) {
        EXPECT_TRUE(auth_.authenticate(kNetwork, {.authorization = "Bearer berth-ops"}));
      }
    });
  }
  for (int i = 0; i < 200; ++i) auth_.use(rules());
  stop = true;
  for (std::thread& thread : asking) thread.join();
}

}  // namespace
}  // namespace berth::gateway
