#include "supervisor/catalog/config_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "supervisor/catalog/config.h"

namespace berth::catalog {
namespace {

// Compares a committed file with what the table gives; with BERTH_UPDATE_DOCS set, writes it.
void check_file(const std::string& name, const std::string& expected) {
  const std::string path = std::string(BERTH_SOURCE_DIR) + "/" + name;
  if (std::getenv("BERTH_UPDATE_DOCS") != nullptr) {  // NOLINT(concurrency-mt-unsafe)
    std::ofstream(path, std::ios::binary) << expected;
  }
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, expected) << name << " is not what the table of settings gives. To update it: "
                            << "BERTH_UPDATE_DOCS=1 ctest -R ConfigPage";
}

TEST(ConfigPage, IsTheOneOfTheTable) {
  check_file("docs/configuration.md", configuration_page());
}

TEST(ConfigPage, ExampleIsTheOneOfTheTable) {
  check_file("deploy/berth.toml.example", example_file());
}

TEST(ConfigPage, ExampleIsTakenAsItIs) {
  const ConfigResult result = parse_config(example_file(), "/etc/berth/berth.toml");
  ASSERT_TRUE(result.config) << result.problems.front().to_string();
  EXPECT_EQ(result.config->server, parse_config("", "/etc/berth/berth.toml").config->server);
}

// With every setting uncommented it must be the defaults, too.
TEST(ConfigPage, EverySettingOfTheExampleHoldsItsDefault) {
  std::string text;
  const std::string example = example_file();
  for (std::size_t at = 0; at < example.size();) {
    const std::size_t end = example.find('\n', at);
    std::string line = example.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("#") && !line.starts_with("# ")) line.erase(0, 1);
    // A llama model, and no command.
    if (line.starts_with("command =")) break;
    text += line + "\n";
  }
  const ConfigResult result = parse_config(text, "/etc/berth/berth.toml");
  ASSERT_TRUE(result.config) << result.problems.front().to_string();
  const Config defaults = parse_config("", "/etc/berth/berth.toml").config.value();
  EXPECT_EQ(result.config->server, defaults.server);
  EXPECT_EQ(result.config->defaults, defaults.defaults);
  EXPECT_EQ(result.config->model_dirs, defaults.model_dirs);
  ASSERT_EQ(result.config->models.size(), 1U);
  EXPECT_EQ(result.config->models[0].settings, defaults.defaults);
}

}  // namespace
}  // namespace berth::catalog
