#include "supervisor/cli/client/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/unit/cli/fake_daemon.h"
#include "tests/unit/cli/test_program.h"

namespace berth::cli {
namespace {

using test::TemporaryDirectory;
using test::TestProgram;
using testing::HasSubstr;

class AccessTest : public testing::Test {
 protected:
  Result<Access> find(const CommonOptions& options = {}) {
    return find_access(options, endpoint_, program_.environment);
  }
  std::string write(const std::string& text) {
    std::string path = directory_.path() + "/file";
    std::ofstream(path) << text;
    return path;
  }

  TemporaryDirectory directory_;
  TestProgram program_;
  Endpoint endpoint_ = *parse_endpoint("127.0.0.1:1");
};

TEST_F(AccessTest, NothingIsNeeded) {
  const auto access = find();
  ASSERT_TRUE(access);
  EXPECT_EQ(access->api_key, "");
  EXPECT_EQ(access->tls_ca, "");
}

TEST_F(AccessTest, FileWinsOverVariable) {
  program_.variables["BERTH_API_KEY"] = "berth-variable\n";
  EXPECT_EQ(find()->api_key, "berth-variable");
  EXPECT_EQ(find({.api_key_file = write("berth-file\nsecond line\n")})->api_key, "berth-file");
}

TEST_F(AccessTest, SocketGetsOnlyAKeyThatWasNamedForIt) {
  endpoint_ = *parse_endpoint("unix:/run/berth/berth.sock");
  program_.variables["BERTH_API_KEY"] = "berth-variable";
  program_.variables["BERTH_TLS_CA"] = "/nowhere";
  EXPECT_EQ(find()->api_key, "");
  EXPECT_EQ(find({.api_key_file = write("berth-file")})->api_key, "berth-file");
}

TEST_F(AccessTest, KeyThatGoesOutInTheClearIsTold) {
  program_.variables["BERTH_API_KEY"] = "berth-key";
  for (const char* here : {"127.0.0.1:1", "127.9.9.9:1", "localhost:1", "[::1]:1"}) {
    endpoint_ = *parse_endpoint(here);
    ASSERT_TRUE(find());
    EXPECT_EQ(program_.err.text, "") << here;
  }
  for (const char* there : {"192.0.2.1:1", "models.example:1", "[2001:db8::1]:1"}) {
    program_.err.text.clear();
    endpoint_ = *parse_endpoint(there);
    ASSERT_TRUE(find());
    EXPECT_THAT(program_.err.text, HasSubstr("in the clear")) << there;
    EXPECT_THAT(program_.err.text, testing::Not(HasSubstr("berth-key")));
  }
  program_.err.text.clear();
  program_.variables["BERTH_TLS_CA"] =
      write("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
  ASSERT_TRUE(find());
  EXPECT_EQ(program_.err.text, "");
  program_.variables.clear();
  ASSERT_TRUE(find());
  EXPECT_EQ(program_.err.text, "") << "there is no key";
}

TEST_F(AccessTest, CertificatesAreRead) {
  const std::string pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  EXPECT_EQ(find({.tls_ca = write(pem)})->tls_ca, pem);
  program_.variables["BERTH_TLS_CA"] = write(pem);
  EXPECT_EQ(find()->tls_ca, pem);
}

TEST_F(AccessTest, WhatCannotBeUsedIsNamed) {
  const auto missing = find({.api_key_file = "/nowhere/key"});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("--api-key-file: cannot read /nowhere/key"));
  const auto empty = find({.api_key_file = write("\n")});
  ASSERT_FALSE(empty);
  EXPECT_THAT(empty.error().message, HasSubstr("berth keys add"));
  program_.variables["BERTH_API_KEY"] = "two words";
  const auto words = find();
  ASSERT_FALSE(words);
  EXPECT_THAT(words.error().message, HasSubstr("BERTH_API_KEY"));
  program_.variables.erase("BERTH_API_KEY");
  const auto ca = find({.tls_ca = write("no certificate")});
  ASSERT_FALSE(ca);
  EXPECT_THAT(ca.error().message, HasSubstr("holds no certificate"));
}

}  // namespace
}  // namespace berth::cli
