#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <cmath>
#include <utility>

#include "worker/grammar/schema_compiler.h"

namespace berth::worker {
namespace json = boost::json;
namespace {

struct TypeKeyword {
  std::string_view keyword;
  std::string_view type;
};

constexpr std::array kTypeKeywords = {
    TypeKeyword{"properties", "object"},
    TypeKeyword{"required", "object"},
    TypeKeyword{"additionalProperties", "object"},
    TypeKeyword{"items", "array"},
    TypeKeyword{"prefixItems", "array"},
    TypeKeyword{"minItems", "array"},
    TypeKeyword{"maxItems", "array"},
    TypeKeyword{"minLength", "string"},
    TypeKeyword{"maxLength", "string"},
    TypeKeyword{"pattern", "string"},
    TypeKeyword{"format", "string"},
    TypeKeyword{"minimum", "number"},
    TypeKeyword{"maximum", "number"},
    TypeKeyword{"exclusiveMinimum", "number"},
    TypeKeyword{"exclusiveMaximum", "number"},
};

// The type that a keyword is about; empty for type, enum and const.
std::string_view type_of_keyword(std::string_view keyword) {
  for (const auto& one : kTypeKeywords) {
    if (one.keyword == keyword) return one.type;
  }
  return {};
}

std::string_view view(json::string_view text) {
  return {text.data(), text.size()};
}

bool is_of_type(const json::value& value, std::string_view type) {
  if (type == "number") return value.is_number();
  if (type == "integer") {
    if (value.is_double()) return std::floor(value.get_double()) == value.get_double();
    return value.is_number();
  }
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_bool();
  if (type == "null") return value.is_null();
  return type == "array" ? value.is_array() : value.is_object();
}

std::vector<std::string> listed_types(const json::object& flat) {
  std::vector<std::string> types;
  const auto* type = flat.if_contains("type");
  if (type == nullptr) return types;
  if (type->is_string()) {
    types.emplace_back(type->get_string());
  } else {
    for (const auto& one : type->get_array()) types.emplace_back(one.get_string());
  }
  return types;
}

// {"properties": …} without "type" is meant as an object.
Result<std::vector<std::string>> types_of(const json::object& flat, const std::string& pointer) {
  auto types = listed_types(flat);
  for (const auto& member : flat) {
    const auto type = type_of_keyword(view(member.key()));
    if (type.empty() || flat.contains("type")) continue;
    if (types.empty()) types.emplace_back(type);
    if (types.front() != type) {
      return schema_error(pointer, "keywords of different types without `type`; say which one");
    }
  }
  return types;
}

// const is an enum of one value.
Result<json::array> listed_values(const json::object& flat, const std::string& pointer) {
  json::array values;
  const auto* constant = flat.if_contains("const");
  const auto* list = flat.if_contains("enum");
  if (constant != nullptr && list != nullptr) {
    const auto& all = list->get_array();
    if (std::find(all.begin(), all.end(), *constant) == all.end()) {
      return schema_error(pointer, "`const` is not among the values of `enum`");
    }
  }
  if (constant != nullptr) {
    values.push_back(*constant);
  } else {
    values = list->get_array();
  }
  const auto types = listed_types(flat);
  json::array kept;
  for (const auto& value : values) {
    const bool fits =
        types.empty() || std::any_of(types.begin(), types.end(),
                                     [&](const auto& type) { return is_of_type(value, type); });
    if (fits) kept.push_back(value);
  }
  for (const auto& member : flat) {
    const auto type = type_of_keyword(view(member.key()));
    if (type.empty()) continue;
    const bool applies = std::any_of(kept.begin(), kept.end(),
                                     [type](const auto& value) { return is_of_type(value, type); });
    if (!applies) continue;
    return schema_error(pointer, "`" + std::string(view(member.key())) +
                                     "` beside `enum` or `const` is not supported; keep the "
                                     "values that fit and leave it out");
  }
  if (kept.empty()) return schema_error(pointer, "no value of `enum` or `const` has this `type`");
  return kept;
}

}  // namespace

// Depth: every level is an anyOf that was written within another one, or reached by a reference;
// the latter is bounded by the number of alternatives.
Status SchemaCompiler::collect(const json::value& flat, const std::string& pointer,
                               Leaves& leaves) {
  if (!flat.is_object()) return {};  // false
  const auto& object = flat.get_object();
  if (!object.contains("anyOf")) return add_leaf(object, pointer, leaves);
  auto text = json_text(flat);
  if (auto charged = flattener_.charge(text.size()); !charged) return charged;
  if (leaves.done.contains(text)) return {};
  if (leaves.open.size() >= SchemaBounds::kAlternatives) {
    return schema_error(pointer, "`anyOf` leads to `anyOf` more than " +
                                     std::to_string(SchemaBounds::kAlternatives) + " times");
  }
  if (!leaves.open.insert(text).second) {
    return schema_error(pointer, "`anyOf` leads back to itself without a property or item between");
  }
  if (auto collected = collect_alternatives(object, pointer, leaves); !collected) return collected;
  leaves.open.erase(text);
  leaves.done.insert(std::move(text));
  return {};
}

Status SchemaCompiler::collect_alternatives(const json::object& flat, const std::string& pointer,
                                            Leaves& leaves) {
  json::object beside = flat;
  beside.erase("anyOf");
  const auto& list = flat.at("anyOf").get_array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto at = pointer + "/anyOf/" + std::to_string(i);
    auto one = flattener_.flatten(list[i], at);
    if (!one) return fail(one.error());
    if (!SchemaFlattener::share_a_type(beside, *one)) continue;
    auto merged = flattener_.merge(beside, *one, at);
    if (!merged) return fail(merged.error());
    if (auto collected = collect(*merged, at, leaves); !collected) return collected;
  }
  return {};
}

Status SchemaCompiler::add_leaf(const json::object& flat, const std::string& pointer,
                                Leaves& leaves) {
  const auto add = [&leaves, &pointer](Leaf leaf) -> Status {
    if (!leaves.texts.insert(leaf.type + json_text(leaf.schema)).second) return {};
    leaves.list.push_back(std::move(leaf));
    if (leaves.list.size() <= SchemaBounds::kAlternatives) return {};
    return schema_error(pointer, "`anyOf` has more than " +
                                     std::to_string(SchemaBounds::kAlternatives) +
                                     " alternatives, those within it included");
  };
  if (flat.contains("enum") || flat.contains("const")) {
    auto values = listed_values(flat, pointer);
    if (!values) return fail(values.error());
    return add(Leaf{"values", {{"enum", std::move(*values)}}});
  }
  const auto types = types_of(flat, pointer);
  if (!types) return fail(types.error());
  if (types->empty()) return add(Leaf{"any", {}});
  for (const auto& type : *types) {
    Leaf leaf{type, {}};
    for (const auto& member : flat) {
      const auto about = type_of_keyword(view(member.key()));
      if (about == type || (about == "number" && type == "integer")) {
        leaf.schema[member.key()] = member.value();
      }
    }
    if (auto added = add(std::move(leaf)); !added) return added;
  }
  return {};
}

}  // namespace berth::worker
