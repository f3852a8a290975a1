#include "supervisor/catalog/setting_value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "common/text.h"
#include "common/units.h"
#include "supervisor/catalog/listen_address.h"
#include "supervisor/catalog/setting_table.h"

namespace berth::catalog {
namespace {

using std::chrono::milliseconds;
using Checked = tl::expected<SettingValue, ValueProblem>;

constexpr std::size_t kMaxTextBytes = 4096;
constexpr std::size_t kMaxNameBytes = 200;

std::vector<std::string> split_choices(std::string_view choices) {
  std::vector<std::string> parts;
  while (!choices.empty()) {
    const std::size_t blank = choices.find(' ');
    parts.emplace_back(choices.substr(0, blank));
    choices.remove_prefix(blank == std::string_view::npos ? choices.size() : blank + 1);
  }
  return parts;
}

std::string one_of(const std::vector<std::string>& parts) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += i + 1 == parts.size() ? " or " : ", ";
    out += toml_quote(parts[i]);
  }
  return out;
}

std::string format_number(double number) {
  std::array<char, 64> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return {digits.data(), end};
}

std::string format_bound(SettingType type, double bound) {
  switch (type) {
    case SettingType::kSize:
    case SettingType::kSizeMap:
      return toml_quote(format_size(static_cast<std::uint64_t>(bound)));
    case SettingType::kDuration:
      return toml_quote(format_duration(milliseconds(static_cast<std::int64_t>(bound))));
    case SettingType::kFraction:
      return format_number(bound);
    default:
      return std::to_string(static_cast<std::uint64_t>(bound));
  }
}

std::string range_text(const SettingSpec& spec) {
  return " from " + format_bound(spec.type, spec.low) + " to " + format_bound(spec.type, spec.high);
}

// What an element of a list must be; empty where the type is no list.
std::string_view element_expected(SettingType type) {
  switch (type) {
    case SettingType::kTextList:
      return "a string";
    case SettingType::kNameList:
      return "a name";
    case SettingType::kPathList:
      return "a path";
    case SettingType::kListenList:
      return R"("unix:PATH" or "HOST:PORT")";
    case SettingType::kHostList:
      return "a host name or an address without a port";
    case SettingType::kOriginList:
      return R"(an origin, such as "https://example.org:8443")";
    default:
      return {};
  }
}

// Checks one value; the element's line and place are added by the caller.
class ValueCheck {
 public:
  ValueCheck(const SettingSpec& spec, const std::string& folder) : spec_(spec), folder_(folder) {}

  [[nodiscard]] Checked check(const TomlNode& node) const {
    if (!spec_.word.empty() && node.type == TomlNode::Type::kText && node.text == spec_.word) {
      return SettingValue(Word{spec_.word});
    }
    switch (spec_.type) {
      case SettingType::kSwitch:
        if (node.type != TomlNode::Type::kSwitch) return unexpected(node);
        return SettingValue(node.truth);
      case SettingType::kCount:
        return count(node);
      case SettingType::kFraction:
        return fraction(node);
      case SettingType::kSize:
        return size(node);
      case SettingType::kDuration:
        return duration(node);
      case SettingType::kChoice:
        return choice(node);
      case SettingType::kText:
      case SettingType::kPath:
      case SettingType::kHostPort:
      case SettingType::kProbe: {
        auto text = element(node);
        if (!text) return tl::unexpected<ValueProblem>(std::move(text.error()));
        return SettingValue(std::move(*text));
      }
      case SettingType::kTextList:
      case SettingType::kNameList:
      case SettingType::kPathList:
      case SettingType::kListenList:
      case SettingType::kHostList:
      case SettingType::kOriginList:
        return list(node);
      case SettingType::kTextMap:
        return text_map(node);
      case SettingType::kSizeMap:
        return size_map(node);
    }
    return unexpected(node);
  }

 private:
  using Text = tl::expected<std::string, ValueProblem>;

  static tl::unexpected<ValueProblem> problem(const TomlNode& node, std::string message) {
    return tl::unexpected<ValueProblem>(ValueProblem{node.line, {}, std::move(message)});
  }

  [[nodiscard]] tl::unexpected<ValueProblem> unexpected(const TomlNode& node,
                                                        std::string_view hint = {}) const {
    return problem(node, "expected " + describe_expected(spec_) + ", found " + node.describe() +
                             std::string(hint));
  }

  // The same for a value that may be an element of a list.
  [[nodiscard]] tl::unexpected<ValueProblem> unexpected_element(const TomlNode& node,
                                                                std::string_view hint = {}) const {
    const std::string_view element = element_expected(spec_.type);
    if (element.empty()) return unexpected(node, hint);
    return problem(node, "expected " + std::string(element) + ", found " + node.describe() +
                             std::string(hint));
  }

  [[nodiscard]] bool in_range(double value) const {
    return value >= spec_.low && value <= spec_.high;
  }

  [[nodiscard]] Checked count(const TomlNode& node) const {
    if (node.type != TomlNode::Type::kInteger || node.integer < 0 ||
        !in_range(static_cast<double>(node.integer))) {
      return unexpected(node);
    }
    return SettingValue(static_cast<std::uint64_t>(node.integer));
  }

  [[nodiscard]] Checked fraction(const TomlNode& node) const {
    double value = 0;
    if (node.type == TomlNode::Type::kInteger) {
      value = static_cast<double>(node.integer);
    } else if (node.type == TomlNode::Type::kNumber) {
      value = node.number;
    } else {
      return unexpected(node);
    }
    if (!std::isfinite(value) || !in_range(value)) return unexpected(node);
    return SettingValue(value);
  }

  [[nodiscard]] tl::expected<std::uint64_t, ValueProblem> size_bytes(const TomlNode& node) const {
    if (node.type != TomlNode::Type::kText) {
      return unexpected(node, node.type == TomlNode::Type::kInteger
                                  ? "; write the number and its unit in quotes"
                                  : "");
    }
    const auto bytes = parse_bytes(node.text);
    if (!bytes || !in_range(static_cast<double>(*bytes))) return unexpected(node);
    return *bytes;
  }

  [[nodiscard]] Checked size(const TomlNode& node) const {
    auto bytes = size_bytes(node);
    if (!bytes) return tl::unexpected<ValueProblem>(std::move(bytes.error()));
    return SettingValue(*bytes);
  }

  [[nodiscard]] Checked duration(const TomlNode& node) const {
    if (node.type == TomlNode::Type::kInteger && node.integer == 0 && spec_.low == 0) {
      return SettingValue(milliseconds(0));
    }
    if (node.type != TomlNode::Type::kText) {
      return unexpected(node, node.type == TomlNode::Type::kInteger
                                  ? "; write the number and its unit in quotes"
                                  : "");
    }
    const auto parsed = parse_duration(node.text);
    if (!parsed || !in_range(static_cast<double>(parsed->count()))) return unexpected(node);
    return SettingValue(*parsed);
  }

  [[nodiscard]] Checked choice(const TomlNode& node) const {
    if (node.type != TomlNode::Type::kText) return unexpected(node);
    const std::vector<std::string> choices = split_choices(spec_.choices);
    if (std::find(choices.begin(), choices.end(), node.text) != choices.end()) {
      return SettingValue(node.text);
    }
    const auto near = nearest_names(node.text, choices, 1);
    return unexpected(node, near.empty() ? "" : "; did you mean " + toml_quote(near[0]) + "?");
  }

  // One string: the value itself, or an element of a list.
  [[nodiscard]] Text element(const TomlNode& node) const {
    if (node.type != TomlNode::Type::kText) return unexpected_element(node);
    const std::string& text = node.text;
    if (text.size() > kMaxTextBytes) {
      return problem(node, "a string of " + std::to_string(text.size()) + " bytes; at most " +
                               std::to_string(kMaxTextBytes) + " are taken");
    }
    const bool text_like = spec_.type == SettingType::kText || spec_.type == SettingType::kTextList;
    const bool control = std::any_of(text.begin(), text.end(), [&](char c) {
      const auto byte = static_cast<unsigned char>(c);
      return text_like ? byte == 0 : byte < 0x20 || byte == 0x7f;
    });
    if (control)
      return problem(node, "control characters are not allowed, found " + node.describe());
    if (text.empty()) {
      if (spec_.may_be_empty || spec_.type == SettingType::kTextList) return text;
      return unexpected_element(node);
    }
    switch (spec_.type) {
      case SettingType::kPath:
      case SettingType::kPathList:
        if (!spec_.prefix.empty() && text.starts_with(spec_.prefix)) return prefixed(node);
        return path(node);
      case SettingType::kHostPort:
        if (const auto good = check_host_port(text); !good) {
          return unexpected(node, ": " + good.error());
        }
        return text;
      case SettingType::kListenList:
        return listen(node);
      case SettingType::kHostList:
        return normal(node, normal_host(text));
      case SettingType::kOriginList:
        return normal(node, normal_origin(text));
      case SettingType::kNameList:
        if (auto wrong = check_name(text)) return problem(node, std::move(*wrong));
        return text;
      case SettingType::kProbe:
        if (text != "completion" && text != "embedding" && !text.starts_with("path:/")) {
          return unexpected(node);
        }
        return text;
      default:
        return text;
    }
  }

  [[nodiscard]] Text prefixed(const TomlNode& node) const {
    const std::string name = node.text.substr(spec_.prefix.size());
    const std::span<const std::string_view> listed = spec_.prefix_names();
    const std::vector<std::string> names(listed.begin(), listed.end());
    if (std::find(names.begin(), names.end(), name) != names.end()) return node.text;
    const auto near = nearest_names(name, names, 1);
    std::string known;
    for (const std::string& one : names) known += (known.empty() ? "" : ", ") + one;
    return unexpected_element(
        node,
        (near.empty() ? std::string()
                      : "; did you mean " + toml_quote(std::string(spec_.prefix) + near[0]) + "?") +
            "; behind \"" + std::string(spec_.prefix) + "\" can stand: " + known);
  }

  [[nodiscard]] Text path(const TomlNode& node) const {
    if (node.text.starts_with("~")) {
      return problem(node,
                     "`~` is not expanded here; write the whole path, or one relative to "
                     "the configuration file; found " +
                         node.describe());
    }
    return absolute_path(node.text, folder_);
  }

  [[nodiscard]] Text normal(const TomlNode& node,
                            tl::expected<std::string, std::string> checked) const {
    if (!checked) return unexpected_element(node, ": " + checked.error());
    return *std::move(checked);
  }

  [[nodiscard]] Text listen(const TomlNode& node) const {
    if (!is_unix_address(node.text)) {
      const auto good = check_host_port(node.text);
      if (!good) return unexpected_element(node, ": " + good.error());
      return node.text;
    }
    const std::string_view given = std::string_view(node.text).substr(kUnixPrefix.size());
    if (given.empty()) return unexpected_element(node, ": its path is empty");
    std::string whole = absolute_path(given, folder_);
    if (auto good = check_socket_path(whole); !good) {
      return problem(node,
                     good.error() + ": " + printable_line(whole, 300) + "; choose a shorter path");
    }
    return std::string(kUnixPrefix) + whole;
  }

  [[nodiscard]] Checked list(const TomlNode& node) const {
    if (node.type != TomlNode::Type::kList) {
      return unexpected(node, node.type == TomlNode::Type::kText ? "; put it in [ ]" : "");
    }
    if (node.items.size() > kMaxListElements) {
      return problem(node, "more than " + std::to_string(kMaxListElements) + " elements");
    }
    std::vector<std::string> texts;
    texts.reserve(node.items.size());
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      auto text = element(node.items[i]);
      if (text && spec_.type != SettingType::kTextList &&
          std::find(texts.begin(), texts.end(), *text) != texts.end()) {
        text = problem(node.items[i], toml_quote(*text) + " is listed twice");
      }
      if (!text) {
        text.error().suffix = "[" + std::to_string(i) + "]";
        return tl::unexpected<ValueProblem>(std::move(text.error()));
      }
      texts.push_back(std::move(*text));
    }
    return SettingValue(std::move(texts));
  }

  // The entries of a table whose keys are free; null and a problem where there are too many.
  template <typename Map, typename Read>
  [[nodiscard]] Checked map(const TomlNode& node, const Read& read) const {
    if (node.type != TomlNode::Type::kTable) return unexpected(node);
    if (node.entries.size() > kMaxListElements) {
      return problem(node, "more than " + std::to_string(kMaxListElements) + " entries");
    }
    Map values;
    for (const TomlEntry& entry : node.entries) {
      auto value = read(entry);
      if (!value) {
        value.error().suffix = "." + toml_key(entry.key) + value.error().suffix;
        return tl::unexpected<ValueProblem>(std::move(value.error()));
      }
      values.emplace(entry.key, std::move(*value));
    }
    return SettingValue(std::move(values));
  }

  [[nodiscard]] Checked text_map(const TomlNode& node) const {
    return map<TextMap>(node, [&](const TomlEntry& entry) -> Text {
      if (entry.key.empty() ||
          entry.key.find_first_of(std::string_view("=\0\n", 3)) != std::string::npos) {
        return problem(entry.value, "not a name of an environment variable");
      }
      if (entry.value.type != TomlNode::Type::kText ||
          entry.value.text.find('\0') != std::string::npos ||
          entry.value.text.size() > kMaxTextBytes) {
        return problem(entry.value, "expected a string, found " + entry.value.describe());
      }
      return entry.value.text;
    });
  }

  [[nodiscard]] Checked size_map(const TomlNode& node) const {
    return map<SizeMap>(
        node, [&](const TomlEntry& entry) -> tl::expected<std::uint64_t, ValueProblem> {
          if (auto wrong = check_name(entry.key)) return problem(entry.value, std::move(*wrong));
          const auto& value = entry.value;
          const auto bytes = value.type == TomlNode::Type::kText
                                 ? parse_bytes(value.text)
                                 : Result<std::uint64_t>(fail(Reason::kInvalidArgument, ""));
          if (!bytes || !in_range(static_cast<double>(*bytes))) {
            return problem(value,
                           "expected a size" + range_text(spec_) + ", found " + value.describe());
          }
          return *bytes;
        });
  }

  const SettingSpec& spec_;
  const std::string& folder_;
};

template <typename Items, typename Format>
std::string format_sequence(std::string_view open, std::string_view close, const Items& items,
                            const Format& format) {
  std::string out(open);
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += ", ";
    first = false;
    out += format(item);
  }
  out += close;
  return out;
}

// format_value() of each alternative.
struct Formatter {
  const SettingSpec& spec;
  std::string operator()(const Word& word) const { return toml_quote(word.text); }
  std::string operator()(bool truth) const { return truth ? "true" : "false"; }
  std::string operator()(std::uint64_t count) const {
    return spec.type == SettingType::kSize ? toml_quote(format_size(count)) : std::to_string(count);
  }
  std::string operator()(double number) const {
    std::string out = format_number(number);
    return out.find_first_of(".e") == std::string::npos ? out + ".0" : out;
  }
  std::string operator()(milliseconds duration) const {
    return toml_quote(format_duration(duration));
  }
  std::string operator()(const std::string& text) const { return toml_quote(text); }
  std::string operator()(const std::vector<std::string>& texts) const {
    return format_sequence("[", "]", texts, toml_quote);
  }
  std::string operator()(const TextMap& texts) const {
    return format_map(texts, [](const std::string& text) { return toml_quote(text); });
  }
  std::string operator()(const SizeMap& sizes) const {
    return format_map(sizes, [](std::uint64_t bytes) { return toml_quote(format_size(bytes)); });
  }
  template <typename Map, typename Format>
  static std::string format_map(const Map& map, const Format& format) {
    if (map.empty()) return "{}";
    return format_sequence("{ ", " }", map, [&](const auto& entry) {
      return toml_key(entry.first) + " = " + format(entry.second);
    });
  }
};

}  // namespace

tl::expected<SettingValue, ValueProblem> check_value(const SettingSpec& spec, const TomlNode& node,
                                                     const std::string& folder) {
  return ValueCheck(spec, folder).check(node);
}

std::optional<std::string> check_name(std::string_view name) {
  if (name.empty()) return "a name must not be empty";
  if (name.size() > kMaxNameBytes) {
    return "a name of " + std::to_string(name.size()) + " bytes; at most " +
           std::to_string(kMaxNameBytes) + " are taken";
  }
  if (const auto at = first_invalid_utf8(name)) {
    return "a name that is not valid UTF-8, at byte " + std::to_string(*at);
  }
  if (printable_line(name, kMaxNameBytes) != name || name.front() == ' ' || name.back() == ' ') {
    return "a name must consist of printable characters, without blanks around it";
  }
  return std::nullopt;
}

std::string format_size(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  if (bytes == 0) return "0";
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + std::string(kUnits.at(unit));
}

std::string describe_expected(const SettingSpec& spec) {
  const std::string word = spec.word.empty() ? std::string() : toml_quote(spec.word) + " or ";
  const std::string or_empty = spec.may_be_empty ? ", or \"\" for none" : "";
  switch (spec.type) {
    case SettingType::kSwitch:
      return "true or false";
    case SettingType::kCount:
      return word + "a whole number" + range_text(spec);
    case SettingType::kFraction:
      return word + "a number" + range_text(spec);
    case SettingType::kSize:
      return word + "a size" + range_text(spec);
    case SettingType::kDuration:
      return word + "a duration" + range_text(spec);
    case SettingType::kText:
      return "a string" + or_empty;
    case SettingType::kChoice:
      return one_of(split_choices(spec.choices));
    case SettingType::kPath:
      return word + "a path" +
             (spec.prefix.empty() ? "" : " or \"" + std::string(spec.prefix) + "NAME\"") + or_empty;
    case SettingType::kHostPort:
      return "\"HOST:PORT\"" + or_empty;
    case SettingType::kTextList:
      return "a list of strings";
    case SettingType::kNameList:
      return "a list of names";
    case SettingType::kPathList:
      return "a list of paths";
    case SettingType::kListenList:
      return "a list of \"unix:PATH\" or \"HOST:PORT\"";
    case SettingType::kHostList:
      return "a list of host names";
    case SettingType::kOriginList:
      return "a list of origins, such as [\"https://example.org\"]";
    case SettingType::kProbe:
      return R"("completion", "embedding" or "path:/…")";
    case SettingType::kTextMap:
      return R"(a table of strings, such as { NAME = "value" })";
    case SettingType::kSizeMap:
      return R"(a table of sizes, such as { host = "8GiB" })";
  }
  return {};
}

std::string format_value(const SettingSpec& spec, const SettingValue& value) {
  return std::visit(Formatter{spec}, value);
}

std::string absolute_path(std::string_view path, const std::string& folder) {
  std::string whole = (std::filesystem::path(folder) / path).lexically_normal().string();
  if (whole.size() > 1 && whole.back() == '/') whole.pop_back();
  return whole;
}

}  // namespace berth::catalog
