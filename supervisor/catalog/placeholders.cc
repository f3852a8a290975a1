#include "supervisor/catalog/placeholders.h"

#include <algorithm>
#include <optional>

namespace berth::catalog {
namespace {

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || c == '_';
}

// The word in braces with which `text` begins: "{port}…" gives "port".
std::optional<std::string_view> word_in_braces(std::string_view text) {
  if (!text.starts_with('{')) return std::nullopt;
  const auto* const end = std::find_if_not(text.begin() + 1, text.end(), is_word_character);
  const auto size = static_cast<std::size_t>(end - text.begin()) - 1;
  if (size == 0 || end == text.end() || *end != '}') return std::nullopt;
  return text.substr(1, size);
}

// Calls `part` for each piece of the text: a placeholder's name, or text that stands for itself.
template <typename Part>
void for_each_part(std::string_view text, Part part) {
  while (!text.empty()) {
    if (text.starts_with("{{")) {
      const auto escaped = word_in_braces(text.substr(1));
      if (escaped && text.substr(escaped->size() + 3).starts_with('}')) {
        part(false, text.substr(1, escaped->size() + 2));
        text.remove_prefix(escaped->size() + 4);
        continue;
      }
    }
    if (const auto word = word_in_braces(text)) {
      part(true, *word);
      text.remove_prefix(word->size() + 2);
      continue;
    }
    const std::size_t next = text.find('{', 1);
    part(false, text.substr(0, next));
    text.remove_prefix(std::min(next, text.size()));
  }
}

}  // namespace

std::set<std::string> placeholders_of(std::string_view text) {
  std::set<std::string> names;
  for_each_part(text, [&](bool placeholder, std::string_view part) {
    if (placeholder) names.emplace(part);
  });
  return names;
}

std::set<std::string> placeholders_of(const ModelSettings& settings) {
  std::set<std::string> names;
  for (const std::string& argument : settings.command) names.merge(placeholders_of(argument));
  for (const auto& [name, value] : settings.environment) names.merge(placeholders_of(value));
  return names;
}

std::string fill_placeholders(std::string_view text,
                              const std::map<std::string, std::string>& values) {
  std::string filled;
  for_each_part(text, [&](bool placeholder, std::string_view part) {
    if (!placeholder) {
      filled += part;
    } else if (const auto value = values.find(std::string(part)); value != values.end()) {
      filled += value->second;
    } else {
      filled += "{" + std::string(part) + "}";
    }
  });
  return filled;
}

bool is_known_placeholder(std::string_view name) {
  return name == kPortPlaceholder || name == kSocketPlaceholder || name == kKeyPlaceholder;
}

}  // namespace berth::catalog
