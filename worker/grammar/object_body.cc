#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "common/text.h"
#include "worker/grammar/code_points.h"
#include "worker/grammar/schema_compiler.h"
#include "worker/grammar/text_set.h"

namespace berth::worker {
namespace json = boost::json;
namespace {

struct Property {
  std::string rule;  // for key, colon and value
  bool required = false;
};

struct Declared {
  std::string name;
  json::value schema;
  bool required = false;
};

// In order of declaration, then those that are only required.
Result<std::vector<Declared>> declared_properties(const json::object& schema, bool open,
                                                  const std::string& pointer) {
  std::vector<Declared> all;
  if (const auto* properties = schema.if_contains("properties")) {
    for (const auto& member : properties->get_object()) {
      all.push_back({std::string(member.key()), member.value(), false});
    }
  }
  const auto* required = schema.if_contains("required");
  const auto* rule = schema.if_contains("additionalProperties");
  // Joined parts may have more together than each of them.
  const auto count = all.size() + (required == nullptr ? 0 : required->get_array().size());
  if (count > 2 * SchemaBounds::kProperties) {
    return schema_error(pointer, "the joined parts have more than " +
                                     std::to_string(2 * SchemaBounds::kProperties) +
                                     " names in `properties` and `required`");
  }
  if (required == nullptr) return all;
  for (const auto& one : required->get_array()) {
    const std::string name(one.get_string());
    const auto found = std::find_if(
        all.begin(), all.end(), [&name](const auto& property) { return property.name == name; });
    if (found != all.end()) {
      found->required = true;
      continue;
    }
    if (!open && rule != nullptr) {
      return schema_error(pointer, "`required` names `" + printable_line(name, 60) +
                                       "`, which is not in `properties`; declare it");
    }
    all.push_back({name, rule != nullptr ? *rule : json::value(true), true});
  }
  return all;
}

std::string optional(const std::string& text) {
  return "(" + text + ")?";
}

// What may follow a member: `comma` is "," and white space.
std::string members_after(const std::vector<Property>& properties, std::size_t begin,
                          const std::string& comma, const std::string& extra) {
  std::string text;
  for (std::size_t i = begin; i < properties.size(); ++i) {
    const auto one = comma + " " + properties[i].rule;
    text += " " + (properties[i].required ? one : optional(one));
  }
  if (!extra.empty()) text += " (" + comma + " " + extra + ")*";
  return text;
}

// At least one member, none of them required: every one may be the first, and what may follow it
// is shared.
std::string optional_members(const std::vector<Property>& properties, const std::string& comma,
                             const std::string& extra, RuleBook& book) {
  std::string rest = extra.empty() ? "" : "(" + comma + " " + extra + ")*";
  std::string ways = extra.empty() ? "" : extra + " " + rest;
  for (std::size_t i = properties.size(); i-- > 0;) {
    const auto shared = rest.empty() ? "" : book.share("rest", rest);
    const auto behind = shared.empty() ? "" : " " + shared;
    const auto& rule = properties[i].rule;
    ways.insert(0, ways.empty() ? "" : " | ").insert(0, behind).insert(0, rule);
    rest = optional(std::string(comma).append(" ").append(rule)).append(behind);
  }
  return ways;
}

}  // namespace

Result<std::string> SchemaCompiler::object_body(const Leaf& leaf, const std::string& pointer) {
  const auto& schema = leaf.schema;
  const auto* rule = schema.if_contains("additionalProperties");
  const bool open = rule != nullptr ? *rule != false : !schema.contains("properties");
  const auto declared = declared_properties(schema, open, pointer);
  if (!declared) return fail(declared.error());

  const auto colon = " \":\" " + book_.json("json-sp") + " ";
  std::vector<Property> properties;
  std::vector<std::string> names;
  for (const auto& one : *declared) {
    names.push_back(one.name);
    const auto at = child_pointer(pointer + "/properties", one.name);
    if (one.schema == false) {
      if (one.required) return schema_error(at, "a required property is false, so nothing fits");
      continue;
    }
    auto value = use(one.schema, at, one.name);
    if (!value) return value;
    const auto key = json::serialize(json::string_view(one.name.data(), one.name.size()));
    properties.push_back({book_.share(one.name, gbnf_literal(key) + colon + *value), one.required});
  }
  std::string extra;
  if (open) {
    auto value = use(rule != nullptr ? *rule : json::value(true), pointer + "/additionalProperties",
                     "value");
    if (!value) return value;
    extra = book_.share("other", string_other_than(names, book_) + colon + *value);
  }

  const auto ws = book_.json("json-ws");
  const auto comma = "\",\" " + ws;
  const auto first_required = std::find_if(properties.begin(), properties.end(),
                                           [](const auto& one) { return one.required; });
  if (first_required != properties.end()) {
    const auto begin = static_cast<std::size_t>(first_required - properties.begin());
    std::string text = "\"{\" " + ws;
    for (std::size_t i = 0; i < begin; ++i)
      text += " " + optional(properties[i].rule + " " + comma);
    text += " " + first_required->rule + members_after(properties, begin + 1, comma, extra);
    return text + " " + ws + " \"}\"";
  }
  const auto members = optional_members(properties, comma, extra, book_);
  if (members.empty()) return "\"{\" " + ws + " \"}\"";
  return "\"{\" " + ws + " (" + book_.share("members", members) + " " + ws + ")? \"}\"";
}

}  // namespace berth::worker
