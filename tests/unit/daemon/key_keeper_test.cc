#include "supervisor/key_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include "common/keys/key_file.h"
#include "tests/simulation/sim_clock.h"
#include "tests/simulation/sim_events.h"
#include "tests/unit/common/temp_dir.h"

namespace berth {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
using testing::HasSubstr;
using testing::IsEmpty;

// A real file under simulated time. inotify is readable when the test says so, so that both ways
// are tried: the report, and the sweep where there is none.
class KeyKeeperTest : public testing::Test {
 protected:
  KeyKeeperTest() { config_.keys_file = file_; }

  void use() {
    bool done = false;
    keeper_.use(config_, [&] { done = true; });
    clock_.settle();
    EXPECT_TRUE(done);
  }
  std::string add(const std::string& name, keys::KeyRole role = keys::KeyRole::kClient) {
    const auto key = keys::make_key();
    const Status added = keys::change_key_file(file_, true, [&](keys::KeyList& list) {
      return list.add({name, role, "", keys::hash_of(*key)});
    });
    EXPECT_TRUE(added) << added.error().message;
    return *key;
  }
  void revoke(const std::string& name) {
    EXPECT_TRUE(keys::change_key_file(file_, false,
                                      [&](keys::KeyList& list) { return list.remove(name); }));
  }
  void write(const std::string& text) {
    std::ofstream(file_) << text;
    ASSERT_EQ(::chmod(file_.c_str(), 0600), 0);
  }
  // The name of the key that comes over the network, or why it is refused.
  std::string who(const std::string& key) {
    const auto caller = authenticator_.authenticate({}, {.authorization = "Bearer " + key});
    return caller ? caller->key : std::string(reason_info(caller.error().reason).name);
  }
  void report_change() {
    if (const auto call = std::exchange(readable_, nullptr)) clock_.post(call);
    clock_.settle();
  }

  test::TempDir dir_;
  const std::string file_ = dir_.file("keys");
  catalog::AuthConfig config_;
  sim::SimClock clock_;
  sim::SimEvents events_{clock_};
  gateway::KeyAuthenticator authenticator_;
  gateway::KeyGate limits_{clock_};
  std::function<void()> readable_;
  std::function<void()> on_changed_;
  KeyKeeper keeper_{
      {.clock = clock_,
       .events = events_,
       .run_blocking = [this](std::function<void()> work) { clock_.post(std::move(work)); },
       .on_readable =
           [this](int, std::function<void()> call) {
             readable_ = std::move(call);
             return Timer();
           },
       .authenticator = authenticator_,
       .limits = limits_,
       .on_changed =
           [this] {
             if (on_changed_) on_changed_();
           }}};
};

TEST_F(KeyKeeperTest, KeysCountWhenTheFileIsRead) {
  const std::string alice = add("alice");
  EXPECT_EQ(who(alice), "unauthenticated");
  use();
  EXPECT_EQ(who(alice), "alice");
  EXPECT_EQ(events_.count("keys.reloaded"), 1U);
  EXPECT_THAT(keeper_.problems(), IsEmpty());
}

TEST_F(KeyKeeperTest, RevokedKeyIsRefusedWhenTheChangeIsReported) {
  const std::string alice = add("alice");
  const std::string bob = add("bob", keys::KeyRole::kAdmin);
  use();
  revoke("alice");
  report_change();
  EXPECT_EQ(who(alice), "unauthenticated");
  EXPECT_EQ(who(bob), "bob");
  EXPECT_EQ(events_.count("keys.reloaded"), 2U);
  const std::string carol = add("carol");
  report_change();
  EXPECT_EQ(who(carol), "carol");
}

TEST_F(KeyKeeperTest, TellsWhenTheKeysThatCountAreOthers) {
  const std::string alice = add("alice");
  use();
  std::string then;
  on_changed_ = [&] { then = who(alice); };
  revoke("alice");
  report_change();
  EXPECT_EQ(then, "unauthenticated");
}

TEST_F(KeyKeeperTest, ChangeThatNobodyReportsIsFoundByTheSweep) {
  const std::string alice = add("alice");
  use();
  revoke("alice");
  clock_.advance(4s);
  EXPECT_EQ(who(alice), "unauthenticated");
  clock_.advance(60s);
  EXPECT_EQ(events_.count("keys.reloaded"), 2U) << "nothing changed any more";
}

TEST_F(KeyKeeperTest, BrokenFileKeepsTheKeysAndIsToldOnce) {
  const std::string alice = add("alice");
  use();
  write("alice:client::nonsense\n");
  report_change();
  EXPECT_EQ(who(alice), "alice");
  ASSERT_EQ(keeper_.problems().size(), 1U);
  EXPECT_THAT(keeper_.problems().front(), HasSubstr(file_ + ":1: expected the SHA-256"));
  clock_.advance(60s);
  use();
  EXPECT_EQ(events_.count("keys.rejected"), 1U);
  write("bob:client::" + keys::to_hex(keys::hash_of("b")) + "\n");
  clock_.advance(4s);
  EXPECT_THAT(keeper_.problems(), IsEmpty());
  EXPECT_EQ(who(alice), "unauthenticated");
  EXPECT_EQ(who("b"), "bob");
}

TEST_F(KeyKeeperTest, RevokedKeyIsRefusedThoughTheFileCouldNotBeReadAtFirst) {
  const std::string alice = add("alice");
  use();
  revoke("alice");
  struct rlimit files {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  const struct rlimit none { 0, files.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  report_change();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  EXPECT_EQ(who(alice), "alice");
  ASSERT_EQ(keeper_.problems().size(), 1U);
  clock_.advance(4s);
  EXPECT_EQ(who(alice), "unauthenticated");
  EXPECT_THAT(keeper_.problems(), IsEmpty());
}

TEST_F(KeyKeeperTest, KeysOfAFileThatIsNotNamedAnyMoreCountNoLonger) {
  const std::string alice = add("alice");
  use();
  config_.keys_file = dir_.file("other");
  std::ofstream(config_.keys_file) << "nonsense\n";
  ASSERT_EQ(::chmod(config_.keys_file.c_str(), 0600), 0);
  use();
  EXPECT_EQ(who(alice), "unauthenticated");
  EXPECT_EQ(events_.count("keys.rejected"), 1U);
  config_.keys_file = file_;
  use();
  EXPECT_EQ(who(alice), "alice");
}

TEST_F(KeyKeeperTest, MissingFileMeansNoKeysUntilItIsMade) {
  use();
  EXPECT_EQ(who("b"), "unauthenticated");
  ASSERT_EQ(keeper_.problems().size(), 1U);
  EXPECT_THAT(keeper_.problems().front(), HasSubstr("berth keys add"));
  const std::string alice = add("alice");
  report_change();
  EXPECT_EQ(who(alice), "alice");
  std::filesystem::remove(file_);
  report_change();
  EXPECT_EQ(who(alice), "unauthenticated") << "who takes the file away takes the keys away";
  EXPECT_EQ(events_.count("keys.rejected"), 2U);
}

TEST_F(KeyKeeperTest, ReloadTakesSettingsInPlace) {
  const std::string alice = add("alice");
  use();
  config_.key_concurrency = 1;
  config_.anonymous = true;
  use();
  const core::Caller caller{.key = "alice"};
  const auto held = limits_.admit(caller);
  EXPECT_TRUE(held);
  EXPECT_FALSE(limits_.admit(caller));
  EXPECT_TRUE(authenticator_.authenticate({}, {})) << "the network without a key";
  config_ = {};
  use();
  EXPECT_TRUE(limits_.admit(caller));
  EXPECT_FALSE(authenticator_.authenticate({}, {}));
  EXPECT_EQ(who(alice), "unauthenticated");
}

TEST_F(KeyKeeperTest, FileThatEverybodyReadsIsAWarning) {
  const std::string alice = add("alice");
  ASSERT_EQ(::chmod(file_.c_str(), 0644), 0);
  use();
  EXPECT_EQ(who(alice), "alice");
  EXPECT_EQ(events_.count("server.degraded"), 1U);
  EXPECT_EQ(keeper_.problems().size(), 1U);
}

}  // namespace
}  // namespace berth
