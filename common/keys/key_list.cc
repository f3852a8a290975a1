#include "common/keys/key_list.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/text.h"

namespace berth::keys {
namespace {

constexpr std::size_t kMaxNameBytes = 64;
constexpr std::size_t kMaxProblems = 50;
constexpr std::size_t kShownBytes = 64;
constexpr std::size_t kFields = 4;

std::string quoted(std::string_view text) {
  return "'" + printable_line(text, kShownBytes) + "'";
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

tl::unexpected<std::string> wrong(std::string message) {
  return tl::unexpected<std::string>(std::move(message));
}

tl::expected<Key, std::string> parse_key(std::string_view line) {
  std::array<std::string_view, kFields> fields;
  std::size_t count = 0;
  for (std::string_view rest = line;; ++count) {
    const std::size_t colon = rest.find(':');
    if (count < kFields) fields.at(count) = rest.substr(0, colon);
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  if (++count != kFields) {
    return wrong("expected name:role:tenant_group:hash, found " + std::to_string(count) +
                 (count == 1 ? " field" : " fields"));
  }
  Key key;
  if (auto problem = check_key_name(fields[0])) return wrong("the name " + *problem);
  key.name = fields[0];
  const auto role = role_from_name(fields[1]);
  if (!role) return wrong("expected the role client or admin, found " + quoted(fields[1]));
  key.role = *role;
  if (!fields[2].empty()) {
    if (auto problem = check_key_name(fields[2])) return wrong("the tenant group " + *problem);
    key.group = fields[2];
  }
  const auto hash = hash_from_hex(fields[3]);
  if (!hash) {
    return wrong(std::string("expected the SHA-256 of the key, 64 hexadecimal digits") +
                 (fields[3].starts_with(kKeyPrefix)
                      ? ", and found a key itself: make a new one, as this one was written down"
                      : ""));
  }
  key.hash = *hash;
  return key;
}

}  // namespace

std::string_view role_name(KeyRole role) {
  switch (role) {
    case KeyRole::kClient:
      return "client";
    case KeyRole::kAdmin:
      return "admin";
  }
  return {};
}

std::optional<KeyRole> role_from_name(std::string_view name) {
  if (name == "client") return KeyRole::kClient;
  if (name == "admin") return KeyRole::kAdmin;
  return std::nullopt;
}

std::optional<std::string> check_key_name(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name.size() > kMaxNameBytes) {
    return "has " + std::to_string(name.size()) + " bytes; at most " +
           std::to_string(kMaxNameBytes) + " are taken";
  }
  if (!std::all_of(name.begin(), name.end(), is_name_character)) {
    return "may have letters, digits, '.', '_' and '-', found " + quoted(name);
  }
  return std::nullopt;
}

tl::expected<KeyList, std::vector<ListProblem>> KeyList::parse(std::string_view text) {
  std::vector<ListProblem> problems;
  const auto problem = [&](std::uint32_t line, std::string message) {
    if (problems.size() < kMaxProblems) problems.push_back({line, std::move(message)});
  };
  KeyList list;
  std::size_t keys = 0;
  std::uint32_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    Line line{std::string(text.substr(0, end)), std::nullopt};
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::string_view content = trimmed(line.text);
    if (!content.empty() && content.front() != '#') {
      auto key = parse_key(content);
      if (!key) {
        problem(number, std::move(key.error()));
      } else {
        line.key = *std::move(key);
        if (++keys == kMaxKeys + 1) {
          problem(number, "more than " + std::to_string(kMaxKeys) + " keys");
        }
      }
    }
    list.lines_.push_back(std::move(line));
  }
  // Sorted, as comparing each with each would take long in a file that is full.
  std::vector<std::pair<const Key*, std::uint32_t>> known;
  for (std::size_t i = 0; i < list.lines_.size(); ++i) {
    if (list.lines_[i].key) known.emplace_back(&*list.lines_[i].key, i + 1);
  }
  const auto find_twice = [&](auto field, std::string_view what) {
    std::ranges::stable_sort(known, {}, [&](const auto& one) { return field(*one.first); });
    for (std::size_t i = 1; i < known.size(); ++i) {
      if (field(*known[i].first) != field(*known[i - 1].first)) continue;
      problem(known[i].second, std::string(what) + " of line " +
                                   std::to_string(known[i - 1].second) + ", " +
                                   quoted(known[i - 1].first->name) + ", stands here again");
    }
  };
  find_twice([](const Key& key) { return key.name; }, "the name");
  find_twice([](const Key& key) { return key.hash; }, "the key");
  if (problems.empty()) return list;
  std::ranges::stable_sort(problems, {}, &ListProblem::line);
  return tl::unexpected<std::vector<ListProblem>>(std::move(problems));
}

std::vector<Key> KeyList::keys() const {
  std::vector<Key> keys;
  for (const Line& line : lines_) {
    if (line.key) keys.push_back(*line.key);
  }
  return keys;
}

std::string KeyList::text() const {
  std::string text;
  for (const Line& line : lines_) text += line.text + "\n";
  return text;
}

Status KeyList::add(const Key& key) {
  if (auto problem = check_key_name(key.name)) {
    return invalid_argument("name", "The name of a key " + *problem + ".");
  }
  if (auto problem = key.group.empty() ? std::nullopt : check_key_name(key.group)) {
    return invalid_argument("group", "The tenant group " + *problem + ".");
  }
  std::size_t count = 0;
  for (const Line& line : lines_) {
    if (!line.key) continue;
    ++count;
    if (line.key->name == key.name) {
      return fail(Reason::kConflict, "There is a key named " + key.name +
                                         " already; revoke it, or take another name.");
    }
    if (line.key->hash == key.hash) {
      return fail(Reason::kConflict, "This key is there already, as " + line.key->name + ".");
    }
  }
  if (count >= kMaxKeys) {
    return fail(Reason::kConflict,
                "There are " + std::to_string(count) + " keys already, and no more may be.");
  }
  std::string line = key.name + ":";
  line.append(role_name(key.role)).append(":").append(key.group).append(":");
  lines_.push_back({line + to_hex(key.hash), key});
  return {};
}

Status KeyList::remove(std::string_view name) {
  const auto found = std::ranges::find_if(
      lines_, [&](const Line& line) { return line.key && line.key->name == name; });
  if (found != lines_.end()) {
    lines_.erase(found);
    return {};
  }
  std::vector<std::string> names;
  for (const Line& line : lines_) {
    if (line.key) names.push_back(line.key->name);
  }
  const std::vector<std::string> near = nearest_names(name, names, 1);
  return fail(Reason::kNotFound, "There is no key named " + quoted(name) +
                                     (near.empty() ? "." : "; did you mean " + near[0] + "?"));
}

}  // namespace berth::keys
