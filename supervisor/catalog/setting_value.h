#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

#include "supervisor/catalog/toml_document.h"

namespace berth::catalog {

struct SettingSpec;

// A word that stands for a value: "auto", "off".
struct Word {
  std::string_view text;  // lives in the table
  bool operator==(const Word&) const = default;
};

using TextMap = std::map<std::string, std::string>;
using SizeMap = std::map<std::string, std::uint64_t>;  // bytes

// A checked value of one setting. Which alternative it holds follows from the setting's type:
// counts and sizes are std::uint64_t, paths and addresses are strings with an absolute path.
using SettingValue = std::variant<Word, bool, std::uint64_t, double, std::chrono::milliseconds,
                                  std::string, std::vector<std::string>, TextMap, SizeMap>;

// Why a value was refused.
struct ValueProblem {
  std::uint32_t line = 0;
  std::string suffix;   // after the key: "[2]" for an element of a list, else empty
  std::string message;  // what was expected, what was found
};

// Checks `node` against the setting and makes its value. Relative paths become absolute below
// `folder` (absolute). Touches no file.
tl::expected<SettingValue, ValueProblem> check_value(const SettingSpec& spec, const TomlNode& node,
                                                     const std::string& folder);

// The value as a configuration file would write it; check_value() of that gives the value again.
std::string format_value(const SettingSpec& spec, const SettingValue& value);

// Exact: "64MiB", "1000B", "0".
std::string format_size(std::uint64_t bytes);

// What the setting takes, for messages and the documentation: `a duration from "1ms" to "24h"`.
std::string describe_expected(const SettingSpec& spec);

// Why `name` cannot be the name of a model, an alias or a device; nothing where it can.
std::optional<std::string> check_name(std::string_view name);

// `path` made absolute below `folder` and freed of "." and "..".
std::string absolute_path(std::string_view path, const std::string& folder);

}  // namespace berth::catalog
