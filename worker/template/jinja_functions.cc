#include "worker/template/jinja_functions.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "worker/template/json_writer.h"

namespace berth::worker {
namespace {

using minja::ArgumentsValue;
using minja::Context;
using minja::Value;
using ContextPtr = std::shared_ptr<Context>;

constexpr std::int64_t kMaxIndent = 64;

using Names = std::vector<std::string_view>;

// Arguments of one call, by position or by name.
class Arguments {
 public:
  Arguments(const ArgumentsValue& values, std::string_view function, const Names& names)
      : values_(names.size()), given_(names.size()) {
    if (values.args.size() > names.size()) {
      throw std::runtime_error(std::string(function) + " has too many arguments");
    }
    for (std::size_t i = 0; i < values.args.size(); ++i) set(i, values.args[i]);
    for (const auto& [name, value] : values.kwargs) {
      const auto found = std::find(names.begin(), names.end(), name);
      if (found == names.end()) {
        throw std::runtime_error(std::string(function) + " has no argument " + name);
      }
      set(static_cast<std::size_t>(found - names.begin()), value);
    }
  }

  [[nodiscard]] const Value& operator[](std::size_t index) const { return values_.at(index); }
  [[nodiscard]] bool has(std::size_t index) const { return given_.at(index); }
  [[nodiscard]] bool flag(std::size_t index) const {
    return has(index) && values_[index].to_bool();
  }

 private:
  void set(std::size_t index, const Value& value) {
    values_[index] = value;
    given_[index] = true;
  }

  std::vector<Value> values_;
  std::vector<bool> given_;
};

using Function = std::function<Value(const Arguments&)>;

void define(Context& context, std::string_view name, Names names, Function function) {
  context.set(std::string(name),
              Value::callable([name, names = std::move(names), function = std::move(function)](
                                  const ContextPtr& /*context*/, ArgumentsValue& values) {
                return function(Arguments(values, name, names));
              }));
}

std::string text_of(const Value& value) {
  return value.is_null() ? std::string() : value.to_str();
}

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

// Characters of a text, elements of anything else.
Value length(const Arguments& arguments) {
  const auto& value = arguments[0];
  if (value.is_null()) return Value(std::int64_t{0});
  if (!value.is_string()) return Value(static_cast<std::int64_t>(value.size()));
  const auto text = value.get<std::string>();
  return Value(static_cast<std::int64_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues_character(c); })));
}

// Bytes of the white space of Python's str.strip() that begins `text`; 0: none.
std::size_t leading_space(std::string_view text) {
  constexpr std::string_view kAscii = " \t\n\r\v\f\x1c\x1d\x1e\x1f";
  constexpr std::array<std::string_view, 19> kWide = {
      "\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003",
      "\u2004", "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200a",
      "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};
  if (text.empty()) return 0;
  if (kAscii.find(text.front()) != std::string_view::npos) return 1;
  for (const auto space : kWide) {
    if (text.starts_with(space)) return space.size();
  }
  return 0;
}

std::string_view trimmed(std::string_view text) {
  for (auto size = leading_space(text); size > 0; size = leading_space(text)) {
    text.remove_prefix(size);
  }
  while (!text.empty()) {
    auto last = text.size() - 1;
    while (last > 0 && continues_character(text[last])) --last;
    if (leading_space(text.substr(last)) == 0) break;
    text = text.substr(0, last);
  }
  return text;
}

Value trim(const Arguments& arguments) {
  if (arguments.has(1)) {
    const auto characters = text_of(arguments[1]);
    const auto text = text_of(arguments[0]);
    const auto begin = text.find_first_not_of(characters);
    if (begin == std::string::npos) return Value(std::string());
    return Value(text.substr(begin, text.find_last_not_of(characters) + 1 - begin));
  }
  return Value(std::string(trimmed(text_of(arguments[0]))));
}

Value tojson(const Arguments& arguments) {
  JsonStyle style;
  style.ascii = arguments.flag(1);
  if (arguments.has(2) && !arguments[2].is_null()) {
    style.indent = static_cast<int>(std::clamp<std::int64_t>(arguments[2].to_int(), 0, kMaxIndent));
    style.item_separator = ",";
  }
  if (arguments.has(3) && arguments[3].is_array() && arguments[3].size() == 2) {
    style.item_separator = text_of(arguments[3].at(std::size_t{0}));
    style.key_separator = text_of(arguments[3].at(std::size_t{1}));
  }
  style.sorted_keys = arguments.flag(4);
  return Value(to_json(arguments[0], style));
}

Value replace(const Arguments& arguments) {
  auto text = text_of(arguments[0]);
  const auto before = text_of(arguments[1]);
  const auto after = text_of(arguments[2]);
  if (before.empty()) return Value(text);
  std::string out;
  std::size_t kept = 0;
  for (auto at = text.find(before); at != std::string::npos; at = text.find(before, kept)) {
    out.append(text, kept, at - kept).append(after);
    kept = at + before.size();
  }
  return Value(out.append(text, kept));
}

Value capitalize(const Arguments& arguments) {
  auto text = text_of(arguments[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    text[i] = static_cast<char>(i == 0 ? std::toupper(c) : std::tolower(c));
  }
  return Value(text);
}

Value title(const Arguments& arguments) {
  auto text = text_of(arguments[0]);
  bool begins = true;
  for (auto& byte : text) {
    const auto c = static_cast<unsigned char>(byte);
    byte = static_cast<char>(begins ? std::toupper(c) : std::tolower(c));
    begins = std::isspace(c) != 0 || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
  }
  return Value(text);
}

// Numbers, or texts (whatever their case).
Value sorted(const Arguments& arguments) {
  std::vector<Value> items;
  for (std::size_t i = 0; i < arguments[0].size(); ++i) items.push_back(arguments[0].at(i));
  const auto key = [](const Value& value) {
    auto text = text_of(value);
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
  };
  std::stable_sort(items.begin(), items.end(), [&key](const Value& a, const Value& b) {
    return a.is_number() && b.is_number() ? a < b : key(a) < key(b);
  });
  if (arguments.flag(1)) std::reverse(items.begin(), items.end());
  return Value::array(items);
}

Value element(const Value& items, bool first) {
  if (items.is_null()) return {};
  if (items.is_string()) {
    const auto text = items.get<std::string>();
    if (text.empty()) return {};
    auto last = first ? std::size_t{0} : text.size() - 1;
    while (!first && last > 0 && continues_character(text[last])) --last;
    auto end = last + 1;
    while (end < text.size() && continues_character(text[end])) ++end;
    return Value(text.substr(last, end - last));
  }
  if (!items.is_array() || items.empty()) return {};
  return items.at(first ? std::size_t{0} : items.size() - 1);
}

Value reversed(const Arguments& arguments) {
  auto items = Value::array();
  for (auto i = arguments[0].size(); i-- > 0;) items.push_back(arguments[0].at(i));
  return items;
}

// A value below `item` by a path of names ("function.name").
Value attribute(Value item, std::string_view path) {
  while (!path.empty()) {
    const auto dot = path.find('.');
    item = item.get(Value(std::string(path.substr(0, dot))));
    path = dot == std::string_view::npos ? "" : path.substr(dot + 1);
  }
  return item;
}

// One of Jinja's tests, applied to a value and an optional second one.
bool passes(const std::string& test, const Value& value, const Value& other) {
  if (test == "equalto" || test == "eq" || test == "==") return value == other;
  if (test == "ne" || test == "!=") return value != other;
  if (test == "in") return minja::in(value, other);
  if (test == "defined") return !value.is_null();
  if (test == "undefined" || test == "none") return value.is_null();
  if (test == "string") return value.is_string();
  if (test == "mapping") return value.is_object();
  if (test == "number") return value.is_number();
  if (test == "boolean") return value.is_boolean();
  if (test == "iterable") return value.is_iterable();
  if (test == "sequence") return value.is_array() || value.is_string();
  throw std::runtime_error("there is no test " + test);
}

Value select_by_attribute(const Arguments& arguments, bool wanted) {
  auto selected = Value::array();
  if (arguments[0].is_null()) return selected;
  const auto path = text_of(arguments[1]);
  for (std::size_t i = 0; i < arguments[0].size(); ++i) {
    const auto& item = arguments[0].at(i);
    const auto value = attribute(item, path);
    const bool passed =
        arguments.has(2) ? passes(text_of(arguments[2]), value, arguments[3]) : value.to_bool();
    if (passed == wanted) selected.push_back(item);
  }
  return selected;
}

std::string formatted_time(std::time_t now, const std::string& format) {
  constexpr std::size_t kBytes = 1024;
  std::tm local{};
  ::localtime_r(&now, &local);
  std::array<char, kBytes> text{};
  const auto size = std::strftime(text.data(), text.size(), format.c_str(), &local);
  return {text.data(), size};
}

}  // namespace

void define_jinja_functions(Context& context, std::time_t now) {
  define(context, "tojson", {"value", "ensure_ascii", "indent", "separators", "sort_keys"}, tojson);
  for (const char* const name : {"length", "count"}) define(context, name, {"value"}, length);
  define(context, "trim", {"value", "chars"}, trim);
  define(context, "replace", {"s", "old", "new"}, replace);
  define(context, "capitalize", {"s"}, capitalize);
  define(context, "first", {"seq"}, [](const Arguments& a) { return element(a[0], true); });
  define(context, "last", {"seq"}, [](const Arguments& a) { return element(a[0], false); });
  define(context, "reverse", {"value"}, reversed);
  define(context, "title", {"s"}, title);
  define(context, "sort", {"value", "reverse"}, sorted);
  define(context, "d", {"value", "default_value", "boolean"}, [](const Arguments& a) {
    return a[0].is_null() || (a.flag(2) && !a[0].to_bool()) ? a[1] : a[0];
  });
  define(context, "selectattr", {"value", "attribute", "test", "other", "unused"},
         [](const Arguments& a) { return select_by_attribute(a, true); });
  define(context, "rejectattr", {"value", "attribute", "test", "other", "unused"},
         [](const Arguments& a) { return select_by_attribute(a, false); });
  define(context, "float", {"value"}, [](const Arguments& a) {
    return a[0].is_number() ? Value(a[0].get<double>())
                            : Value(std::strtod(text_of(a[0]).c_str(), nullptr));
  });
  define(context, "abs", {"value"}, [](const Arguments& a) {
    return a[0].is_number_integer() ? Value(std::int64_t{std::abs(a[0].get<std::int64_t>())})
                                    : Value(std::fabs(a[0].get<double>()));
  });
  define(context, "strftime_now", {"format"},
         [now](const Arguments& a) { return Value(formatted_time(now, text_of(a[0]))); });
}

}  // namespace berth::worker
