#include "tests/unit/worker/grammar/schema_samples.h"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <string_view>
#include <utility>

#include "worker/grammar/schema_document.h"

namespace berth::worker::test {
namespace json = boost::json;
namespace {

constexpr std::array<std::string_view, 9> kCharacters = {"a", "b", "\"", "\\", "\n",
                                                         "é", "😀", "/",  " "};
constexpr std::array<const char*, 6> kNames = {"a", "ab", "abc", "b\"", "né", "key"};
constexpr std::array<const char*, 4> kFormats = {"date", "time", "date-time", "uuid"};

std::int64_t integer_at(const json::object& schema, json::string_view key, std::int64_t otherwise) {
  const auto* value = schema.if_contains(key);
  return value == nullptr ? otherwise : value->to_number<std::int64_t>();
}

}  // namespace

json::object SchemaSamples::document_schema() {
  json::object definitions;
  for (const auto* name : {"d0", "d1"}) definitions[name] = object_schema(2, true);
  definitions["top"] = schema(0, false);
  json::object root;
  root["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  root["$ref"] = "#/$defs/top";
  root["$defs"] = std::move(definitions);
  return root;
}

json::value SchemaSamples::schema(int depth, bool may_refer) {
  constexpr int kDepth = 3;
  if (may_refer && below(4) == 0) {
    return json::object{{"$ref", coin() ? "#/$defs/d0" : "#/$defs/d1"}, {"description", "d"}};
  }
  if (depth >= kDepth) return scalar_schema();
  switch (below(8)) {
    case 0:
    case 1:
      return object_schema(depth, true);
    case 2:
      return array_schema(depth);
    case 3: {
      json::array list;
      for (std::size_t i = 1 + below(3); i > 0; --i) list.push_back(schema(depth + 1, false));
      return json::object{{coin() ? "anyOf" : "oneOf", std::move(list)}};
    }
    case 4: {
      json::object first = object_schema(depth, false);
      json::object second;
      second["properties"] = json::object{{"joined", schema(depth + 1, false)}};
      second["required"] = json::array{"joined"};
      return json::object{{"allOf", json::array{std::move(first), std::move(second)}}};
    }
    default:
      return scalar_schema();
  }
}

json::value SchemaSamples::scalar_schema() {
  switch (below(9)) {
    case 0:
    case 1:
      return string_schema();
    case 2:
    case 3:
      return number_schema();
    case 4:
      return json::object{{"type", "boolean"}};
    case 5: {
      json::array values;
      for (std::size_t i = 1 + below(24); i > 0; --i) values.push_back(any_value(2));
      return json::object{{"enum", std::move(values)}};
    }
    case 6:
      return json::object{{"const", any_value(1)}};
    case 7: {
      auto schema = string_schema();
      if (coin()) {
        schema["nullable"] = true;
      } else {
        schema["type"] = json::array{"string", "null", "boolean"};
      }
      return schema;
    }
    default:
      return coin() ? json::value(true) : json::value(json::object{{"title", "anything"}});
  }
}

json::object SchemaSamples::string_schema() {
  json::object schema{{"type", "string"}};
  if (below(4) == 0) {
    schema["format"] = kFormats.at(below(kFormats.size()));
    return schema;
  }
  const auto least = below(4);
  if (coin()) schema["minLength"] = least;
  if (coin()) schema["maxLength"] = least + below(8) * below(40);
  return schema;
}

json::object SchemaSamples::number_schema() {
  json::object schema{{"type", coin() ? "integer" : "number"}};
  const auto low = static_cast<std::int64_t>(below(4'000)) - 2'000;
  const auto high = low + 2 + static_cast<std::int64_t>(below(3'000));
  if (coin()) schema[coin() ? "minimum" : "exclusiveMinimum"] = low;
  if (coin()) schema[coin() ? "maximum" : "exclusiveMaximum"] = high;
  return schema;
}

json::object SchemaSamples::array_schema(int depth) {
  json::object schema{{"type", "array"}};
  if (below(3) == 0) {
    json::array first;
    for (std::size_t i = 1 + below(3); i > 0; --i) first.push_back(this->schema(depth + 1, false));
    schema["minItems"] = below(first.size() + 1);
    schema["prefixItems"] = std::move(first);
    if (coin()) schema["items"] = false;
    return schema;
  }
  const auto least = below(3);
  if (below(6) > 0) schema["items"] = this->schema(depth + 1, least == 0);
  if (least > 0) schema["minItems"] = least;
  if (coin()) schema["maxItems"] = least + below(4);
  return schema;
}

json::object SchemaSamples::object_schema(int depth, bool closed_at_will) {
  json::object schema;
  if (coin()) schema["type"] = "object";
  json::object properties;
  json::array required;
  for (const auto* name : kNames) {
    if (below(3) > 0) continue;
    const bool must = coin();
    properties[name] = this->schema(depth + 1, !must);
    if (must) required.emplace_back(name);
  }
  schema["properties"] = std::move(properties);
  if (!required.empty()) schema["required"] = std::move(required);
  if (closed_at_will) {
    switch (below(4)) {
      case 0:
        schema["additionalProperties"] = false;
        break;
      case 1:
        schema["additionalProperties"] = true;
        break;
      case 2:
        schema["additionalProperties"] = number_schema();
        break;
      default:
        break;
    }
  }
  return schema;
}

json::value SchemaSamples::any_value(int depth) {
  switch (below(depth < 3 ? 7 : 5)) {
    case 0:
      return nullptr;
    case 1:
      return coin();
    case 2:
      return static_cast<std::int64_t>(below(2'000)) - 1'000;
    case 3:
      return (static_cast<double>(below(4'000)) - 2'000) / 16 + 0.03125;
    case 4:
      return json::value(text(0, 5));
    case 5: {
      json::array list;
      for (std::size_t i = below(3); i > 0; --i) list.push_back(any_value(depth + 1));
      return list;
    }
    default: {
      json::object members;
      for (std::size_t i = below(3); i > 0; --i) members[text(0, 3)] = any_value(depth + 1);
      return members;
    }
  }
}

std::string SchemaSamples::text(std::size_t least, std::size_t most) {
  std::string result;
  for (std::size_t i = least + below(most - least + 1); i > 0; --i) {
    result += kCharacters.at(below(kCharacters.size()));
  }
  return result;
}

json::value SchemaSamples::value_of(const json::object& schema) {
  return value(schema, schema, 0);
}

json::value SchemaSamples::value(const json::value& schema, const json::object& root, int depth) {
  if (schema.is_bool()) return any_value(1);
  const auto& object = schema.get_object();
  if (const auto* reference = object.if_contains("$ref")) {
    const std::string name(reference->get_string());
    return value(root.at("$defs").at(name.substr(name.rfind('/') + 1)), root, depth);
  }
  for (const auto* word : {"anyOf", "oneOf"}) {
    if (const auto* list = object.if_contains(word)) {
      return value(list->get_array().at(below(list->get_array().size())), root, depth);
    }
  }
  if (const auto* all = object.if_contains("allOf")) {
    auto joined = value(all->get_array().at(0), root, depth).get_object();
    const auto second = value(all->get_array().at(1), root, depth);
    for (const auto& member : second.get_object()) {
      joined[member.key()] = member.value();
    }
    return joined;
  }
  if (const auto* list = object.if_contains("enum")) {
    return list->get_array().at(below(list->get_array().size()));
  }
  if (const auto* constant = object.if_contains("const")) return *constant;
  if (object.contains("properties")) return object_value(object, root, depth);
  const auto* type = object.if_contains("type");
  if (type == nullptr) return any_value(1);
  if (type->is_array() || (object.contains("nullable") && coin())) {
    if (!type->is_array() || coin()) return nullptr;
  }
  if (*type == "array") return array_value(object, root, depth);
  if (*type == "boolean") return coin();
  if (*type == "integer" || *type == "number") return number_value(object, *type == "integer");
  if (const auto* format = object.if_contains("format")) {
    return format_value(std::string(format->get_string()));
  }
  const auto least = static_cast<std::size_t>(integer_at(object, "minLength", 0));
  const auto most = integer_at(object, "maxLength", static_cast<std::int64_t>(least) + 5);
  return json::value(text(least, static_cast<std::size_t>(most)));
}

json::value SchemaSamples::object_value(const json::object& schema, const json::object& root,
                                        int depth) {
  constexpr int kDepth = 4;
  json::array required;
  if (const auto* list = schema.if_contains("required")) required = list->get_array();
  json::object members;
  for (const auto& property : schema.at("properties").get_object()) {
    const bool must =
        std::find(required.begin(), required.end(), json::value(property.key())) != required.end();
    if (!must && (depth >= kDepth || coin())) continue;
    members[property.key()] = value(property.value(), root, depth + 1);
  }
  const auto* more = schema.if_contains("additionalProperties");
  if (more == nullptr || *more == false || coin()) return members;
  for (const auto* name : {"other", "a-b", ""}) {
    if (coin()) members[name] = value(*more, root, depth + 1);
  }
  return members;
}

json::value SchemaSamples::array_value(const json::object& schema, const json::object& root,
                                       int depth) {
  constexpr int kDepth = 4;
  json::array first;
  if (const auto* prefix = schema.if_contains("prefixItems")) first = prefix->get_array();
  const auto* items = schema.if_contains("items");
  const auto least = static_cast<std::size_t>(integer_at(schema, "minItems", 0));
  auto most = static_cast<std::size_t>(
      integer_at(schema, "maxItems", static_cast<std::int64_t>(least + first.size()) + 2));
  if (items != nullptr && *items == false) most = std::min(most, first.size());
  const auto size = depth >= kDepth ? least : least + below(most - least + 1);
  json::array list;
  for (std::size_t i = 0; i < size; ++i) {
    list.push_back(value(i < first.size()   ? first[i]
                         : items != nullptr ? *items
                                            : json::value(true),
                         root, depth + 1));
  }
  return list;
}

json::value SchemaSamples::number_value(const json::object& schema, bool whole) {
  auto low = integer_at(schema, "minimum", -5'000);
  auto high = integer_at(schema, "maximum", 8'000);
  if (schema.contains("exclusiveMinimum")) low = integer_at(schema, "exclusiveMinimum", 0) + 1;
  if (schema.contains("exclusiveMaximum")) high = integer_at(schema, "exclusiveMaximum", 0) - 1;
  const auto picked =
      low + static_cast<std::int64_t>(below(static_cast<std::size_t>(high - low + 1)));
  if (whole || picked == high || coin()) return picked;
  return static_cast<double>(picked) + 0.375;
}

json::value SchemaSamples::format_value(const std::string& format) {
  if (format == "date") return coin() ? "2024-02-29" : "1999-12-31";
  if (format == "time") return coin() ? "23:59:59Z" : "00:00:00.5+01:30";
  if (format == "date-time") return coin() ? "2024-04-30T01:02:03Z" : "0001-01-01T00:00:00-00:00";
  return coin() ? "00000000-0000-0000-0000-000000000000" : "0aB1c2D3-e4f5-6789-abcd-ef0123456789";
}

std::string SchemaSamples::damaged(std::string text) {
  constexpr std::string_view kBits = "{}[]\",:\\ 0159.-+eEtfnab\n";
  for (std::size_t i = 1 + below(2); i > 0 && !text.empty(); --i) {
    const auto at = below(text.size());
    switch (below(4)) {
      case 0:
        text.erase(at, 1 + below(3));
        break;
      case 1:
        text.insert(at, 1, kBits[below(kBits.size())]);
        break;
      case 2:
        text.insert(at, text.substr(at, 1 + below(6)));
        break;
      default:
        text[at] = kBits[below(kBits.size())];
    }
  }
  return text;
}

namespace {

bool has_type(const json::value& type, const json::value& value) {
  if (type.is_array()) {
    const auto& list = type.get_array();
    return std::any_of(list.begin(), list.end(),
                       [&value](const auto& one) { return has_type(one, value); });
  }
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_bool();
  if (type == "null") return value.is_null();
  return type == "integer" ? value.is_int64() || value.is_uint64() : value.is_number();
}

std::int64_t length_of(const json::string& text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
}

bool object_is_valid(const json::object& schema, const json::object& members,
                     const json::object& root) {
  if (const auto* required = schema.if_contains("required")) {
    for (const auto& name : required->get_array()) {
      if (!members.contains(name.get_string())) return false;
    }
  }
  const auto* properties = schema.if_contains("properties");
  const auto* more = schema.if_contains("additionalProperties");
  for (const auto& member : members) {
    const auto* own =
        properties == nullptr ? nullptr : properties->get_object().if_contains(member.key());
    if (own == nullptr && more == nullptr && properties != nullptr) return false;
    const auto* rule = own != nullptr ? own : more;
    if (rule != nullptr && !is_valid(*rule, member.value(), root)) return false;
  }
  return true;
}

bool array_is_valid(const json::object& schema, const json::array& list, const json::object& root) {
  const auto size = static_cast<std::int64_t>(list.size());
  if (size < integer_at(schema, "minItems", 0)) return false;
  if (size > integer_at(schema, "maxItems", size)) return false;
  json::array first;
  if (const auto* prefix = schema.if_contains("prefixItems")) first = prefix->get_array();
  const auto* items = schema.if_contains("items");
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i >= first.size() && items == nullptr) continue;
    if (!is_valid(i < first.size() ? first[i] : *items, list[i], root)) return false;
  }
  return true;
}

bool number_is_valid(const json::object& schema, double value) {
  const auto* low = schema.if_contains("minimum");
  const auto* above = schema.if_contains("exclusiveMinimum");
  const auto* high = schema.if_contains("maximum");
  const auto* under = schema.if_contains("exclusiveMaximum");
  return (low == nullptr || value >= low->to_number<double>()) &&
         (above == nullptr || value > above->to_number<double>()) &&
         (high == nullptr || value <= high->to_number<double>()) &&
         (under == nullptr || value < under->to_number<double>());
}

}  // namespace

bool is_valid(const json::value& schema, const json::value& value, const json::object& root) {
  if (schema.is_bool()) return schema.get_bool();
  auto object = schema.get_object();
  if (const auto* reference = object.if_contains("$ref")) {
    const std::string name(reference->get_string());
    return is_valid(root.at("$defs").at(name.substr(name.rfind('/') + 1)), value, root);
  }
  if (const auto* all = object.if_contains("allOf")) {
    // The samples join objects of which the parts name all properties.
    auto joined = all->get_array().at(0).get_object();
    auto& properties = joined["properties"].get_object();
    const auto& second = all->get_array().at(1).get_object();
    for (const auto& member : second.at("properties").get_object()) {
      properties[member.key()] = member.value();
    }
    if (!joined.contains("required")) joined["required"] = json::array{};
    joined["required"].get_array().push_back("joined");
    return is_valid(joined, value, root);
  }
  if (object.contains("nullable") && value.is_null()) return true;
  for (const auto* word : {"anyOf", "oneOf"}) {
    if (const auto* list = object.if_contains(word)) {
      return std::any_of(list->get_array().begin(), list->get_array().end(),
                         [&](const auto& one) { return is_valid(one, value, root); });
    }
  }
  if (const auto* list = object.if_contains("enum")) {
    const auto& all = list->get_array();
    return std::find(all.begin(), all.end(), value) != all.end();
  }
  if (const auto* constant = object.if_contains("const")) return *constant == value;
  if (object.contains("properties")) {
    return value.is_object() && object_is_valid(object, value.get_object(), root);
  }
  const auto* type = object.if_contains("type");
  if (type != nullptr && !has_type(*type, value)) return false;
  if (value.is_array()) return array_is_valid(object, value.get_array(), root);
  if (value.is_number()) return number_is_valid(object, value.to_number<double>());
  if (!value.is_string()) return true;
  const auto length = length_of(value.get_string());
  return length >= integer_at(object, "minLength", 0) &&
         length <= integer_at(object, "maxLength", length);
}

std::string spaced_text(const json::value& value) {
  std::string text;
  if (value.is_object()) {
    for (const auto& member : value.get_object()) {
      text += (text.empty() ? "" : ", ") + json::serialize(member.key()) + ": " +
              spaced_text(member.value());
    }
    return "{" + text + "}";
  }
  if (value.is_array()) {
    bool first = true;
    for (const auto& one : value.get_array()) {
      text += (first ? "" : ", ") + spaced_text(one);
      first = false;
    }
    return "[" + text + "]";
  }
  return json_text(value);
}

}  // namespace berth::worker::test
