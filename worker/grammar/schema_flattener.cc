#include "worker/grammar/schema_flattener.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <unordered_set>
#include <utility>

#include "common/text.h"

namespace berth::worker {
namespace json = boost::json;
namespace {

constexpr std::size_t kOpen = 64;  // references and allOf within one another

std::size_t weight(const json::value& value) {
  constexpr std::size_t kNode = 16;
  if (value.is_string()) return kNode + value.get_string().size();
  std::size_t sum = kNode;
  if (value.is_array()) {
    for (const auto& one : value.get_array()) sum += weight(one);
  } else if (value.is_object()) {
    for (const auto& member : value.get_object()) {
      sum += kNode + member.key().size() + weight(member.value());
    }
  }
  return sum;
}

json::array as_list(const json::value& type) {
  if (type.is_array()) return type.get_array();
  return {type};
}

bool has(const json::array& list, const json::value& value) {
  const auto text = json_text(value);
  return std::any_of(list.begin(), list.end(),
                     [&text](const auto& one) { return json_text(one) == text; });
}

json::value common_types(const json::value& first, const json::value& second) {
  const auto others = as_list(second);
  const auto own = as_list(first);
  json::array both;
  for (const auto& one : own) {
    if (has(others, one) || (one == "integer" && has(others, "number"))) both.push_back(one);
  }
  for (const auto& one : others) {
    if (one == "integer" && has(own, "number") && !has(both, one)) both.push_back(one);
  }
  return both.size() == 1 ? both.front() : json::value(both);
}

json::value both_schemas(const json::value& first, const json::value& second) {
  if (first == second) return first;
  return json::object{{"allOf", json::array{first, second}}};
}

bool stricter(const json::value& first, const json::value& second, bool lower_bound) {
  const auto a = first.to_number<double>();
  const auto b = second.to_number<double>();
  return lower_bound ? a >= b : a <= b;
}

// {"type": "string", "nullable": true} of OpenAPI.
json::value with_null(json::value schema) {
  if (!schema.is_object()) return json::object{{"type", "null"}};
  auto& object = schema.get_object();
  if (object.empty()) return schema;
  if (!object.contains("type") || object.contains("anyOf") || object.contains("const") ||
      object.contains("enum")) {
    return json::object{{"anyOf", json::array{schema, json::object{{"type", "null"}}}}};
  }
  auto types = as_list(object["type"]);
  if (!has(types, "null")) types.emplace_back("null");
  object["type"] = types;
  return schema;
}

}  // namespace

bool SchemaFlattener::share_a_type(const json::object& first, const json::value& second) {
  const auto* type = first.if_contains("type");
  const auto* other = second.is_object() ? second.get_object().if_contains("type") : nullptr;
  if (type == nullptr || other == nullptr) return true;
  const auto both = common_types(*type, *other);
  return !both.is_array() || !both.get_array().empty();
}

Status SchemaFlattener::charge(std::size_t bytes) {
  work_ += bytes;
  if (work_ <= SchemaBounds::kWork) return {};
  return fail(Reason::kInvalidArgument,
              "The schema repeats its parts too often: joining them takes more than " +
                  std::to_string(SchemaBounds::kWork) +
                  " bytes; refer to shared parts by a plain `$ref` instead of `allOf`.");
}

Result<json::value> SchemaFlattener::flatten(const json::value& schema,
                                             const std::string& pointer) {
  if (auto charged = charge(weight(schema)); !charged) return fail(charged.error());
  if (!schema.is_object()) {
    if (schema.get_bool()) return json::value(json::object{});
    return schema;
  }
  if (open_.size() >= kOpen) {
    return schema_error(pointer, "`$ref` and `allOf` lead to one another more than " +
                                     std::to_string(kOpen) + " times");
  }
  const auto& object = schema.get_object();
  json::value result = json::object{};
  const auto part = [this, &result, &pointer](const json::value& one,
                                              const std::string& id) -> Status {
    open_.push_back(id);
    auto flat = flatten(one, pointer);
    open_.pop_back();
    if (!flat) return fail(flat.error());
    auto merged = merge(std::move(result), *flat, pointer);
    if (!merged) return fail(merged.error());
    result = std::move(*merged);
    return {};
  };
  if (const auto* reference = object.if_contains("$ref")) {
    const std::string target(reference->get_string());
    if (std::find(open_.begin(), open_.end(), target) != open_.end()) {
      return schema_error(pointer, "`$ref` `" + printable_line(target, 60) +
                                       "` leads back to itself without a property or item between");
    }
    if (auto done = part(*document_.find(target), target); !done) return fail(done.error());
  }
  if (const auto* all = object.if_contains("allOf")) {
    for (const auto& one : all->get_array()) {
      if (auto done = part(one, {}); !done) return fail(done.error());
    }
  }
  const auto own = own_part(object, pointer);
  if (!own) return fail(own.error());
  auto merged = merge(std::move(result), *own, pointer);
  if (!merged) return merged;
  const auto* nullable = object.if_contains("nullable");
  if (nullable != nullptr && nullable->get_bool()) return with_null(std::move(*merged));
  return merged;
}

Result<json::value> SchemaFlattener::own_part(const json::object& schema,
                                              const std::string& pointer) {
  json::object own;
  for (const auto& member : schema) {
    const std::string_view name(member.key().data(), member.key().size());
    const auto shape = keyword_shape(name);
    if (shape == KeywordShape::kAnnotation || shape == KeywordShape::kDefinitions ||
        shape == KeywordShape::kFlag || shape == KeywordShape::kFalse || name == "$ref" ||
        name == "allOf") {
      continue;
    }
    if (name == "oneOf" || name == "anyOf") {
      if (own.contains("anyOf")) {
        return schema_error(pointer, "`anyOf` beside `oneOf` is not supported; use one of them");
      }
      own["anyOf"] = member.value();
    } else {
      own[member.key()] = member.value();
    }
  }
  return json::value(std::move(own));
}

Result<json::value> SchemaFlattener::merge(json::value first, const json::value& second,
                                           const std::string& pointer) {
  if (!first.is_object()) return first;  // false
  if (!second.is_object()) return second;
  if (auto charged = charge(weight(first) + weight(second)); !charged) return fail(charged.error());
  auto& into = first.get_object();
  const auto& other = second.get_object();
  json::object other_copy = other;
  if (into.contains("properties") || other.contains("properties")) {
    if (auto done = adopt_properties(into, other, pointer); !done) return fail(done.error());
    if (auto done = adopt_properties(other_copy, first.get_object(), pointer); !done) {
      return fail(done.error());
    }
  }
  const auto tuple = [](const json::object& one, const json::object& two) {
    return one.contains("prefixItems") && (two.contains("items") || two.contains("prefixItems"));
  };
  if ((tuple(into, other) || tuple(other, into)) && first != second) {
    return schema_error(pointer,
                        "`prefixItems` in two parts that are joined is not supported; "
                        "keep it in one of them");
  }
  for (const auto& member : other_copy) {
    const std::string_view name(member.key().data(), member.key().size());
    auto* mine = into.if_contains(member.key());
    if (mine == nullptr) {
      into[member.key()] = member.value();
    } else if (*mine != member.value()) {
      if (auto done = merge_keyword(name, *mine, member.value(), pointer); !done) {
        return fail(done.error());
      }
    }
  }
  return first;
}

// A part that is closed, or restricts what it does not name, does so for the properties of the
// other part too.
Status SchemaFlattener::adopt_properties(json::object& closed, const json::object& other,
                                         const std::string& pointer) {
  const auto* rule = closed.if_contains("additionalProperties");
  const auto* theirs = other.if_contains("properties");
  if (rule == nullptr || theirs == nullptr || *rule == true) return {};
  auto* entry = closed.if_contains("properties");
  json::object mine = entry != nullptr ? entry->get_object() : json::object{};
  for (const auto& member : theirs->get_object()) {
    if (mine.contains(member.key())) continue;
    if (*rule == false) {
      return schema_error(pointer,
                          "`additionalProperties`: false in one part forbids the property `" +
                              printable_line({member.key().data(), member.key().size()}, 60) +
                              "` of another part that is joined with it; declare all properties "
                              "in one place");
    }
    mine[member.key()] = *rule;
  }
  closed["properties"] = std::move(mine);
  return {};
}

Status SchemaFlattener::merge_keyword(std::string_view name, json::value& into,
                                      const json::value& other, const std::string& pointer) {
  if (name == "type") {
    into = common_types(into, other);
    if (!into.is_array() || !into.get_array().empty()) return {};
    return schema_error(pointer, "the parts that are joined here have no `type` in common");
  }
  if (name == "enum") {
    std::unordered_set<std::string> texts;
    for (const auto& one : other.get_array()) texts.insert(json_text(one));
    json::array both;
    for (const auto& one : into.get_array()) {
      if (texts.contains(json_text(one))) both.push_back(one);
    }
    if (both.empty()) {
      return schema_error(pointer,
                          "the parts that are joined here have no value of `enum` in common");
    }
    into = std::move(both);
    return {};
  }
  if (name == "required") {
    auto& list = into.get_array();
    std::unordered_set<std::string> names;
    for (const auto& one : list) names.emplace(one.get_string());
    for (const auto& one : other.get_array()) {
      if (names.emplace(one.get_string()).second) list.push_back(one);
    }
    return {};
  }
  if (name == "properties") {
    auto& mine = into.get_object();
    for (const auto& member : other.get_object()) {
      auto* same = mine.if_contains(member.key());
      mine[member.key()] = same == nullptr ? member.value() : both_schemas(*same, member.value());
    }
    return {};
  }
  if (name == "items" || name == "additionalProperties") {
    into = both_schemas(into, other);
    return {};
  }
  if (name.starts_with("min") || name == "exclusiveMinimum") {
    if (!stricter(into, other, true)) into = other;
    return {};
  }
  if (name.starts_with("max") || name == "exclusiveMaximum") {
    if (!stricter(into, other, false)) into = other;
    return {};
  }
  return schema_error(pointer, "`" + std::string(name) +
                                   "` stands in two parts that are joined here, which is not "
                                   "supported; keep one of them");
}

}  // namespace berth::worker
