#include "supervisor/catalog/setting_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "supervisor/catalog/toml_document.h"

namespace berth::catalog {
namespace {

tl::expected<SettingValue, ValueProblem> check_text(const SettingSpec& spec,
                                                    const std::string& text) {
  const auto root = parse_toml("value = " + text);
  if (!root) return tl::unexpected<ValueProblem>(ValueProblem{0, {}, root.error().message});
  return check_value(spec, root->entries.front().value, "/etc/berth");
}

std::vector<const SettingSpec*> every_setting() {
  std::vector<const SettingSpec*> all;
  for (const SectionSpec& section : all_sections()) {
    if (section.section == Section::kDefaults) continue;
    for (const SettingSpec* spec : settings_of(section.section)) all.push_back(spec);
  }
  return all;
}

// A value that the setting takes and that is not its default.
std::string other_value(const SettingSpec& spec) {
  switch (spec.type) {
    case SettingType::kSwitch:
      return spec.fallback == "true" ? "false" : "true";
    case SettingType::kCount:
      return std::to_string(static_cast<std::uint64_t>(spec.low) + 17);
    case SettingType::kFraction:
      return "0.25";
    case SettingType::kSize:
      return "\"7MiB\"";
    case SettingType::kDuration:
      return "\"1234ms\"";
    case SettingType::kText:
      return "\"other\"";
    case SettingType::kChoice:
      return toml_quote(spec.choices.substr(spec.choices.rfind(' ') + 1));
    case SettingType::kPath:
      return "\"some/where\"";
    case SettingType::kHostPort:
      return "\"[::1]:0\"";
    case SettingType::kTextList:
    case SettingType::kNameList:
    case SettingType::kPathList:
    case SettingType::kHostList:
      return R"(["other"])";
    case SettingType::kOriginList:
      return R"(["https://other:8443"])";
    case SettingType::kListenList:
      return R"(["unix:other.sock"])";
    case SettingType::kProbe:
      return "\"path:/ready\"";
    case SettingType::kTextMap:
      return R"({ NAME = "value" })";
    case SettingType::kSizeMap:
      return R"({ host = "2GiB" })";
  }
  return {};
}

TEST(SettingTable, EverySettingIsWhole) {
  std::set<std::string> seen;
  for (const SettingSpec* spec : every_setting()) {
    const std::string name =
        std::string(section_spec(spec->section).name) + "." + std::string(spec->key);
    EXPECT_TRUE(seen.insert(name).second) << name << " is there twice";
    EXPECT_FALSE(spec->doc.empty()) << name;
    EXPECT_TRUE(spec->doc.ends_with('.')) << name;
    EXPECT_FALSE(describe_expected(*spec).empty()) << name;
    EXPECT_EQ(toml_key(spec->key), spec->key) << name << " must be a bare key";
    EXPECT_TRUE(!spec->used || spec->store != nullptr) << name << " is used but not stored";
  }
}

TEST(SettingTable, DefaultsAreWhatTheSettingsTake) {
  for (const SettingSpec* spec : every_setting()) {
    const auto value = check_text(*spec, std::string(spec->fallback));
    ASSERT_TRUE(value) << spec->key << ": " << value.error().message;
    EXPECT_EQ(format_value(*spec, *value), spec->fallback) << spec->key;
  }
}

TEST(SettingTable, WrittenValuesReadBack) {
  for (const SettingSpec* spec : every_setting()) {
    const auto value = check_text(*spec, other_value(*spec));
    ASSERT_TRUE(value) << spec->key << ": " << value.error().message;
    const auto again = check_text(*spec, format_value(*spec, *value));
    ASSERT_TRUE(again) << spec->key << ": " << again.error().message;
    EXPECT_EQ(*again, *value) << spec->key;
  }
}

TEST(SettingTable, BoundsAreInclusiveAndEnforced) {
  for (const SettingSpec* spec : every_setting()) {
    if (spec->type != SettingType::kCount) continue;
    const auto low = static_cast<std::int64_t>(spec->low);
    const auto high = static_cast<std::int64_t>(spec->high);
    EXPECT_TRUE(check_text(*spec, std::to_string(low))) << spec->key;
    EXPECT_TRUE(check_text(*spec, std::to_string(high))) << spec->key;
    EXPECT_FALSE(check_text(*spec, std::to_string(low - 1))) << spec->key;
    EXPECT_FALSE(check_text(*spec, std::to_string(high + 1))) << spec->key;
  }
}

// What a setting stores must arrive in the configuration: a row whose type does not fit its member
// would be lost.
TEST(SettingTable, EveryStoredSettingArrives) {
  for (const SettingSpec* spec : every_setting()) {
    if (spec->store == nullptr) continue;
    const bool of_model = spec->section == Section::kModel;
    std::string text = "[" + std::string(section_spec(spec->section).name);
    if (of_model || spec->section == Section::kDevice) text += ".m";
    text += "]\n";
    std::string base = text;
    if (spec->applies == Applies::kCommand || spec->key == "kind") {
      text += "command = [\"x\"]\n";
      base += "kind = \"command\"\ncommand = [\"x\"]\n";
      if (spec->key == "command") text = base.substr(0, base.find("command = "));
      if (spec->applies == Applies::kCommand && spec->key != "command") text = base;
      if (spec->key == "kind") base = "[model.m]\n";
    }
    // One of the two alone is refused.
    if (spec->key == "tls_cert") text += "tls_key = \"k\"\n";
    if (spec->key == "tls_key") text += "tls_cert = \"c\"\n";
    text += std::string(spec->key) + " = " + other_value(*spec) + "\n";
    const ConfigResult before = parse_config(base, "/etc/berth/berth.toml");
    const ConfigResult after = parse_config(text, "/etc/berth/berth.toml");
    ASSERT_TRUE(before.config) << base << before.problems.front().to_string();
    ASSERT_TRUE(after.config) << text << after.problems.front().to_string();
    const bool differs = before.config->server != after.config->server ||
                         before.config->auth != after.config->auth ||
                         before.config->model_dirs != after.config->model_dirs ||
                         before.config->memory != after.config->memory ||
                         before.config->models != after.config->models;
    EXPECT_TRUE(differs) << text;
  }
}

TEST(SettingTable, DefaultsSectionTakesTheKeysOfAModel) {
  EXPECT_NE(find_setting(Section::kDefaults, "ttl"), nullptr);
  EXPECT_EQ(find_setting(Section::kDefaults, "ttl"), find_setting(Section::kModel, "ttl"));
  EXPECT_EQ(find_setting(Section::kDefaults, "path"), nullptr);
  EXPECT_EQ(find_setting(Section::kDefaults, "aliases"), nullptr);
}

TEST(FormatSize, IsExact) {
  EXPECT_EQ(format_size(0), "0");
  EXPECT_EQ(format_size(1000), "1000B");
  EXPECT_EQ(format_size(1536), "1536B");
  EXPECT_EQ(format_size(std::uint64_t{64} << 20), "64MiB");
  EXPECT_EQ(format_size(std::uint64_t{3} << 50), "3072TiB");
}

TEST(CheckName, TakesPrintableNames) {
  for (const char* good : {"a", "qwen3-8b", "zai-org/GLM-OCR", "Modell für alle", "a b"}) {
    EXPECT_FALSE(check_name(good)) << good;
  }
  for (const char* bad : {"", " a", "a ", "a\nb", "a\tb", "\xff", "a\x7f"}) {
    EXPECT_TRUE(check_name(bad)) << bad;
  }
  EXPECT_TRUE(check_name(std::string(201, 'a')));
  EXPECT_EQ(check_name("a\xff"), "a name that is not valid UTF-8, at byte 1");
}

TEST(AbsolutePath, IsBelowTheFolderAndClean) {
  EXPECT_EQ(absolute_path("a/../b", "/etc"), "/etc/b");
  EXPECT_EQ(absolute_path("../b/", "/etc/berth"), "/etc/b");
  EXPECT_EQ(absolute_path("/x//y/./z", "/etc"), "/x/y/z");
  EXPECT_EQ(absolute_path("/", "/etc"), "/");
  EXPECT_EQ(absolute_path(".", "/etc"), "/etc");
}

}  // namespace
}  // namespace berth::catalog
