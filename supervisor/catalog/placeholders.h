#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "supervisor/catalog/model.h"

namespace berth::catalog {

// What a command's arguments and environment may leave open until it is started (L27). A
// placeholder is a word of small letters and underscores in braces; braces around anything else
// (JSON, a template) are text. `{{word}}` stands for the text `{word}`.
inline constexpr std::string_view kPortPlaceholder = "port";
inline constexpr std::string_view kSocketPlaceholder = "socket";
inline constexpr std::string_view kKeyPlaceholder = "api_key";

// The names of the placeholders in a text, known or not.
std::set<std::string> placeholders_of(std::string_view text);

// The placeholders of all arguments and environment variables.
std::set<std::string> placeholders_of(const ModelSettings& settings);

// The text with each placeholder replaced that has a value; others stay as they are.
std::string fill_placeholders(std::string_view text,
                              const std::map<std::string, std::string>& values);

// Whether berth fills it in.
bool is_known_placeholder(std::string_view name);

}  // namespace berth::catalog
