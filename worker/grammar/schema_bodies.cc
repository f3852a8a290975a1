#include <array>
#include <boost/json/array.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "common/text.h"
#include "worker/grammar/number_range.h"
#include "worker/grammar/pattern.h"
#include "worker/grammar/schema_compiler.h"
#include "worker/grammar/text_set.h"

namespace berth::worker {
namespace json = boost::json;
namespace {

// Items of an array that are written out before blocks are used: an item may be an array again,
// and blocks leave libllama two ways to go on.
constexpr std::uint64_t kItemsWrittenOut = 256;

constexpr std::array<std::string_view, 4> kFormats = {"date", "time", "date-time", "uuid"};

// A count that was checked to be whole; nothing where it is missing or above all limits.
std::optional<std::uint64_t> count_of(const json::object& schema, json::string_view keyword) {
  const auto* value = schema.if_contains(keyword);
  if (value == nullptr) return std::nullopt;
  const auto number = value->to_number<double>();
  if (number > static_cast<double>(RuleBook::kLargestCount)) return std::nullopt;
  return static_cast<std::uint64_t>(number);
}

std::optional<std::int64_t> whole(double value) {
  constexpr double kLimit = 9'223'372'036'854'775'808.0;  // 2^63
  if (std::floor(value) != value || value >= kLimit || value < -kLimit) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

std::optional<std::int64_t> whole(const json::value& value) {
  if (value.is_int64()) return value.get_int64();
  if (value.is_uint64()) return std::nullopt;  // Boost.JSON: only above the signed ones
  return whole(value.get_double());
}

// A bound for integers. Values beyond 64 bits: no bound, or nothing fits.
struct IntegerBound {
  std::optional<std::int64_t> value;
  bool nothing = false;
};

IntegerBound integer_bound(const json::value& bound, bool lower, bool exclusive) {
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  auto value = whole(bound);
  if (!value && bound.is_double()) {
    value = whole(lower ? std::ceil(bound.get_double()) : std::floor(bound.get_double()));
    const bool fraction = std::floor(bound.get_double()) != bound.get_double();
    if (fraction) exclusive = false;
  }
  if (!value) {
    const bool positive = bound.to_number<double>() > 0;
    return {std::nullopt, positive == lower};
  }
  if (!exclusive) return {value, false};
  if (*value == (lower ? kMost : kLeast)) return {std::nullopt, true};
  return {lower ? *value + 1 : *value - 1, false};
}

std::optional<std::int64_t> tighter(std::optional<std::int64_t> a, std::optional<std::int64_t> b,
                                    bool lower) {
  if (!a) return b;
  if (!b) return a;
  return lower ? std::max(*a, *b) : std::min(*a, *b);
}

Result<std::string> integers(const json::object& schema, const std::string& pointer) {
  std::optional<std::int64_t> low;
  std::optional<std::int64_t> high;
  bool nothing = false;
  const auto apply = [&](json::string_view keyword, bool lower, bool exclusive) {
    const auto* bound = schema.if_contains(keyword);
    if (bound == nullptr) return;
    const auto one = integer_bound(*bound, lower, exclusive);
    nothing = nothing || one.nothing;
    auto& side = lower ? low : high;
    side = tighter(side, one.value, lower);
  };
  apply("minimum", true, false);
  apply("exclusiveMinimum", true, true);
  apply("maximum", false, false);
  apply("exclusiveMaximum", false, true);
  auto text = nothing ? std::string() : integer_range(low, high);
  if (text.empty()) return schema_error(pointer, "no integer lies within the bounds");
  return text;
}

Result<std::string> decimals(const json::object& schema, const std::string& pointer) {
  std::optional<NumberBound> low;
  std::optional<NumberBound> high;
  struct Side {
    json::string_view keyword;
    bool lower;
    bool exclusive;
  };
  constexpr std::array kSides = {Side{"minimum", true, false}, Side{"exclusiveMinimum", true, true},
                                 Side{"maximum", false, false},
                                 Side{"exclusiveMaximum", false, true}};
  for (const auto& [keyword, lower, exclusive] : kSides) {
    const auto* bound = schema.if_contains(keyword);
    if (bound == nullptr) continue;
    const auto value = whole(*bound);
    if (!value) {
      return schema_error(pointer, "`" + std::string(keyword) +
                                       "` of a `number` must be a whole number of at most 64 bits; "
                                       "round it, or leave it out");
    }
    auto& side = lower ? low : high;
    const bool looser = side && (lower ? *value < side->value : *value > side->value);
    if (looser) continue;
    const bool both = side && side->value == *value && side->exclusive;
    side = NumberBound{*value, exclusive || both};
  }
  if (low && high && low->value > high->value) {
    return schema_error(pointer, "no number lies within the bounds");
  }
  auto text = decimal_range(low, high);
  if (text.empty()) return schema_error(pointer, "no number lies within the bounds");
  return text;
}

}  // namespace

Result<std::string> SchemaCompiler::body(const Leaf& leaf, const std::string& pointer) {
  if (leaf.type == "any") return book_.json("json-value");
  if (leaf.type == "values") return values_body(leaf, pointer);
  if (leaf.type == "null") return book_.json("json-null");
  if (leaf.type == "boolean") return book_.json("json-boolean");
  if (leaf.type == "string") return string_body(leaf, pointer);
  if (leaf.type == "array") return array_body(leaf, pointer);
  if (leaf.type == "object") return object_body(leaf, pointer);
  return number_body(leaf, pointer);
}

Result<std::string> SchemaCompiler::values_body(const Leaf& leaf, const std::string& /*pointer*/) {
  std::vector<std::string> texts;
  for (const auto& value : leaf.schema.at("enum").get_array()) texts.push_back(json_text(value));
  return one_of_texts(std::move(texts), "values", book_);
}

Result<std::string> SchemaCompiler::string_body(const Leaf& leaf, const std::string& pointer) {
  const auto& schema = leaf.schema;
  const auto* pattern = schema.if_contains("pattern");
  const auto* format = schema.if_contains("format");
  if ((pattern != nullptr || format != nullptr) && schema.size() > 1) {
    return schema_error(pointer,
                        "`pattern`, `format` and lengths beside one another are not "
                        "supported; use one `pattern`, with counts as in `{1,20}`");
  }
  if (pattern != nullptr) {
    return pattern_to_gbnf(std::string_view(pattern->get_string()),
                           "The schema's " + printable_line(pointer, 200), book_);
  }
  if (format != nullptr) {
    for (const auto name : kFormats) {
      if (std::string_view(format->get_string()) != name) continue;
      return R"("\"" )" + book_.json("json-" + std::string(name)) + R"( "\"")";
    }
    return schema_error(pointer, "`format` `" +
                                     printable_line(std::string_view(format->get_string()), 60) +
                                     "` is not supported (date, time, date-time and uuid are); "
                                     "leave it out, or use `pattern`");
  }
  const auto least = count_of(schema, "minLength").value_or(0);
  const auto most = count_of(schema, "maxLength");
  if (most && *most < least) return schema_error(pointer, "`maxLength` is below `minLength`");
  if (most == 0U) return std::string(R"("\"\"")");
  return R"("\"" )" + book_.repeat(book_.json("json-char"), least, most) + R"( "\"")";
}

Result<std::string> SchemaCompiler::number_body(const Leaf& leaf, const std::string& pointer) {
  if (leaf.schema.empty()) return book_.json("json-" + leaf.type);
  if (leaf.type == "integer") return integers(leaf.schema, pointer);
  return decimals(leaf.schema, pointer);
}

Result<std::string> SchemaCompiler::array_body(const Leaf& leaf, const std::string& pointer) {
  const auto& schema = leaf.schema;
  const auto least = count_of(schema, "minItems").value_or(0);
  auto most = count_of(schema, "maxItems");
  std::vector<std::string> first;
  if (const auto* prefix = schema.if_contains("prefixItems")) {
    const auto& list = prefix->get_array();
    for (std::size_t i = 0; i < list.size() && (!most || i < *most); ++i) {
      auto one = use(list[i], pointer + "/prefixItems/" + std::to_string(i), "item");
      if (!one) return one;
      first.push_back(*one);
    }
  }
  const auto* items = schema.if_contains("items");
  if (items != nullptr && *items == false) {
    most = std::min<std::uint64_t>(most.value_or(first.size()), first.size());
  }
  if (most && *most < least) {
    return schema_error(pointer, "an array can have at most " + std::to_string(*most) +
                                     " items, but `minItems` is " + std::to_string(least));
  }
  const auto ws = book_.json("json-ws");
  const std::string empty = "\"[\" " + ws + " \"]\"";
  if (most == 0U) return empty;
  std::string list;
  const auto fixed = first.size();
  if (!most || *most > fixed) {
    auto one = items == nullptr ? Result<std::string>(book_.json("json-value"))
                                : use(*items, pointer + "/items", "item");
    if (!one) return one;
    const auto more = book_.share("more", "\",\" " + ws + " " + *one);
    const std::uint64_t before = fixed > 0 ? fixed : 1;
    list = book_.repeat(more, least > before ? least - before : 0,
                        most ? std::optional<std::uint64_t>(*most - before) : std::nullopt,
                        kItemsWrittenOut);
    if (fixed == 0) list = *one + " " + list;
  }
  // Items that need not be there are groups within one another, from the last one.
  for (std::size_t i = fixed; i-- > 0;) {
    std::string text = i == 0 ? first[i] : "\",\" " + ws + " " + first[i];
    text.append(list.empty() ? "" : " ").append(list);
    if (i > 0 && i >= least) text = book_.share("rest", text) + "?";
    list = std::move(text);
  }
  if (least > 0) return "\"[\" " + ws + " " + list + " " + ws + " \"]\"";
  return "\"[\" " + ws + " (" + book_.share("items", list) + " " + ws + ")? \"]\"";
}

}  // namespace berth::worker
