#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/keys/key_file.h"
#include "tests/unit/cli/fake_daemon.h"
#include "tests/unit/cli/test_program.h"

namespace berth::cli {
namespace {

using test::TemporaryDirectory;
using test::TestProgram;
using testing::HasSubstr;
using testing::Not;

class KeysTest : public testing::Test {
 protected:
  KeysTest() {
    std::ofstream(config_) << "[auth]\nkeys_file = \"keys\"\n";
    program_.variables["BERTH_CONFIG"] = config_;
  }
  ExitCode run(const std::vector<std::string>& arguments) {
    program_.out.text.clear();
    program_.err.text.clear();
    std::vector<std::string> all{"keys"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return program_.run(all);
  }
  std::vector<keys::Key> keys() { return keys::read_key_file(file_)->list.keys(); }

  TemporaryDirectory directory_;
  const std::string config_ = directory_.path() + "/berth.toml";
  const std::string file_ = directory_.path() + "/keys";
  TestProgram program_;
};

TEST_F(KeysTest, AddPrintsTheKeyAndKeepsItsHash) {
  EXPECT_EQ(run({"add", "alice"}), ExitCode::kOk);
  std::string key = program_.out.text;
  ASSERT_TRUE(key.starts_with("berth-") && key.ends_with("\n")) << key;
  key.pop_back();
  EXPECT_THAT(program_.err.text, HasSubstr("the only time"));
  ASSERT_EQ(keys().size(), 1U);
  EXPECT_EQ(keys()[0].name, "alice");
  EXPECT_EQ(keys()[0].role, keys::KeyRole::kClient);
  EXPECT_EQ(keys()[0].hash, keys::hash_of(key));
}

TEST_F(KeysTest, AddTakesRoleAndGroupAndSaysItInJson) {
  EXPECT_EQ(run({"add", "ops", "--role", "admin", "--group", "team", "--json"}), ExitCode::kOk);
  const auto json = boost::json::parse(program_.out.text);
  EXPECT_EQ(json.at("name").as_string(), "ops");
  EXPECT_EQ(json.at("role").as_string(), "admin");
  EXPECT_EQ(json.at("tenant_group").as_string(), "team");
  EXPECT_EQ(json.at("file").as_string(), file_);
  const std::string key(json.at("key").as_string());
  EXPECT_EQ(keys().at(0).hash, keys::hash_of(key));
  EXPECT_EQ(keys().at(0).group, "team");
}

TEST_F(KeysTest, ListShowsNoSecrets) {
  run({"add", "alice", "--group", "team"});
  const std::string key = program_.out.text.substr(0, program_.out.text.size() - 1);
  EXPECT_EQ(run({"list"}), ExitCode::kOk);
  EXPECT_THAT(program_.out.text, HasSubstr("alice"));
  EXPECT_THAT(program_.out.text, HasSubstr("team"));
  EXPECT_THAT(program_.out.text, Not(HasSubstr(key)));
  EXPECT_THAT(program_.out.text, Not(HasSubstr(keys::to_hex(keys::hash_of(key)))));
  EXPECT_EQ(run({"list", "--json"}), ExitCode::kOk);
  EXPECT_EQ(boost::json::parse(program_.out.text).at("keys").as_array().size(), 1U);
}

TEST_F(KeysTest, RevokeTakesOneAway) {
  run({"add", "alice"});
  run({"add", "bob"});
  EXPECT_EQ(run({"revoke", "alice"}), ExitCode::kOk);
  ASSERT_EQ(keys().size(), 1U);
  EXPECT_EQ(keys()[0].name, "bob");
  EXPECT_EQ(run({"revoke", "alice"}), ExitCode::kNo);
  EXPECT_THAT(program_.err.text, HasSubstr("no key named 'alice'"));
}

TEST_F(KeysTest, WithoutASettingItSaysWhatToAdd) {
  std::ofstream(config_) << "[server]\n";
  EXPECT_EQ(run({"add", "alice"}), ExitCode::kNo);
  EXPECT_THAT(program_.err.text, HasSubstr("keys_file = "));
  EXPECT_THAT(program_.err.text, HasSubstr("[auth]"));
  EXPECT_EQ(program_.out.text, "");
  EXPECT_EQ(run({"add", "alice", "--keys-file", file_}), ExitCode::kOk);
  EXPECT_EQ(keys().size(), 1U);
}

TEST_F(KeysTest, WithoutAConfigurationItSaysHowADemoIsMeant) {
  program_.variables["BERTH_CONFIG"] = directory_.path() + "/none.toml";
  EXPECT_NE(run({"add", "alice"}), ExitCode::kOk);
  EXPECT_THAT(program_.err.text, HasSubstr("--keys-file"));
  EXPECT_THAT(program_.err.text, HasSubstr("BERTH_CONFIG (of a demo: DIR/berth.toml)"));
}

TEST_F(KeysTest, WrongUseIsTold) {
  EXPECT_EQ(run({"add", "al ice"}), ExitCode::kUsage);
  EXPECT_THAT(program_.err.text, HasSubstr("the name of a key may have letters"));
  EXPECT_EQ(run({"add", "alice", "--role", "root"}), ExitCode::kUsage);
  EXPECT_EQ(run({"add", "alice", "--group", "a:b"}), ExitCode::kUsage);
  EXPECT_FALSE(std::filesystem::exists(file_));
  EXPECT_EQ(run({"list"}), ExitCode::kNo) << "there is no file";
  EXPECT_EQ(run({"add", "alice"}), ExitCode::kOk);
  EXPECT_EQ(run({"add", "alice"}), ExitCode::kNo);
  EXPECT_THAT(program_.err.text, HasSubstr("a key named alice already"));
  EXPECT_EQ(program_.out.text, "") << "a key that does not count is not shown";
}

TEST_F(KeysTest, DoctorLooksAtTheFileAndTheListeners) {
  run({"add", "alice"});
  program_.run({"doctor"});
  EXPECT_THAT(program_.out.text, HasSubstr("1 key in " + file_));
  EXPECT_THAT(program_.out.text, HasSubstr("only this machine reaches the server"));
  ASSERT_EQ(::chmod(file_.c_str(), 0666), 0);
  std::ofstream(config_) << "[server]\nhttp = \"0.0.0.0:1\"\n[auth]\nkeys_file = \"keys\"\n";
  program_.out.text.clear();
  program_.run({"doctor"});
  EXPECT_THAT(program_.out.text, HasSubstr("chmod o-w"));
  EXPECT_THAT(program_.out.text, HasSubstr("other machines reach 0.0.0.0:1 without TLS"));
}

}  // namespace
}  // namespace berth::cli
