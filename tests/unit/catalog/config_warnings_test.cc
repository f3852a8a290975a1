#include "supervisor/catalog/config_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/models/random_model.h"
#include "tests/unit/catalog/scratch_dir.h"

namespace berth::catalog {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ConfigWarnings : public ::testing::Test {
 protected:
  ConfigWarnings() {
    std::filesystem::create_directories(dir_ / "models");
    EXPECT_TRUE(test_models::write_model({}, dir_ / "models/demo.gguf"));
  }
  std::vector<std::string> warnings(const std::string& text) {
    const ConfigResult result =
        parse_config("[models]\ndirs = [\"models\"]\n" + text, dir_ / "berth.toml");
    EXPECT_TRUE(result.config) << result.problems.front().to_string();
    return config_warnings(result.config.value_or(Config()));
  }
  ScratchDir dir_;
};

TEST_F(ConfigWarnings, NothingIsSaidOfWhatIsThere) {
  EXPECT_THAT(warnings("[model.demo]\npath = \"models/demo.gguf\"\n"), IsEmpty());
  EXPECT_THAT(warnings("[model.p]\nkind = \"command\"\ncommand = [\"p\", \"{port}\"]\n"),
              IsEmpty());
}

TEST_F(ConfigWarnings, FilesThatAreNotThere) {
  const std::vector<std::string> all = warnings(
      "[server]\ntls_cert = \"cert.pem\"\ntls_key = \"key.pem\"\n[auth]\nkeys_file = \"keys\"\n"
      "[model.demo]\ndraft = \"draft.gguf\"\nadapters = [\"lora.gguf\"]\n"
      "[model.gone]\npath = \"gone.gguf\"\n"
      "[model.p]\nkind = \"command\"\ncommand = [\"p\"]\ndirectory = \"nowhere\"\n");
  for (const char* named : {"cert.pem", "key.pem", "/keys", "draft.gguf", "lora.gguf", "gone.gguf",
                            "nowhere", "does not say where to listen"}) {
    EXPECT_THAT(all, Contains(HasSubstr(named)));
  }
}

TEST_F(ConfigWarnings, AFileThatLosesItsOwnName) {
  EXPECT_THAT(warnings("[model.twin]\npath = \"models/demo.gguf\"\n"),
              Contains(AllOf(HasSubstr("twin"), HasSubstr("no model \"demo\" any more"))));
  EXPECT_THAT(warnings("[model.twin]\npath = \"models/demo.gguf\"\naliases = [\"demo\"]\n"),
              IsEmpty());
}

}  // namespace
}  // namespace berth::catalog
