#include "tests/stress/random_schema.h"

#include "tests/stress/random_text.h"

namespace berth::stress {
namespace {

namespace json = boost::json;

std::string short_text(Random& random) {
  return random_text(random, any_size(random, 0, 24));
}

json::object text_schema(Random& random) {
  json::object schema{{"type", "string"}};
  switch (random.below(5)) {
    case 0:
      schema["maxLength"] = any_size(random, 0, 200);
      break;
    case 1: {
      const auto least = any_size(random, 0, 20);
      schema["minLength"] = least;
      schema["maxLength"] = least + any_size(random, 0, 30);
      break;
    }
    case 2:
      schema["pattern"] =
          one_text(random, {"^[a-z]{2,8}$", "^\\d{4}-\\d{2}$", "^(ja|nein)$", "^a*b+c?$",
                            "^[^x]{1,9}$", "^(\\w\\w-){1,3}\\w$", "^.$", "^[\\u4e00-\\u9fff]+$"});
      break;
    case 3:
      schema["format"] = one_text(random, {"date", "time", "date-time", "uuid"});
      break;
    default:
      break;
  }
  return schema;
}

json::object number_schema(Random& random) {
  json::object schema{{"type", random.percent(70) ? "integer" : "number"}};
  const auto low = static_cast<std::int64_t>(any_size(random, 0, 1U << 20U)) -
                   static_cast<std::int64_t>(any_size(random, 0, 1U << 20U));
  if (random.percent(50)) schema["minimum"] = low;
  if (random.percent(50)) {
    schema["maximum"] = low + static_cast<std::int64_t>(any_size(random, 0, 1U << 30U));
  }
  return schema;
}

json::object enum_schema(Random& random) {
  json::array values;
  const auto count = any_size(random, 1, random.percent(5) ? 5000 : 12);
  for (std::uint64_t i = 0; i < count; ++i) {
    values.emplace_back(random.percent(70) ? json::value(short_text(random) + std::to_string(i))
                                           : json::value(i));
  }
  return {{"enum", values}};
}

json::object array_schema(Random& random, int depth) {
  json::object schema{{"type", "array"}};
  if (random.percent(20)) {
    json::array items;
    const auto count = random.between(1, 4);
    for (std::uint64_t i = 0; i < count; ++i) items.emplace_back(random_schema(random, depth - 1));
    schema["prefixItems"] = items;
    return schema;
  }
  if (random.percent(80)) schema["items"] = random_schema(random, depth - 1);
  const auto least = random.percent(30) ? any_size(random, 0, 6) : 0;
  if (least > 0) schema["minItems"] = least;
  if (random.percent(50)) schema["maxItems"] = least + any_size(random, 0, 20);
  return schema;
}

json::object object_schema(Random& random, int depth) {
  json::object properties;
  json::array required;
  const auto count = any_size(random, 0, random.percent(3) ? 300 : 6);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto name = "p" + std::to_string(i) + (random.percent(10) ? short_text(random) : "");
    properties[name] = random_schema(random, count > 10 ? 0 : depth - 1);
    if (random.percent(60)) required.emplace_back(name);
  }
  // Nesting in itself, with a way out.
  if (random.percent(10)) {
    properties["next"] = json::object{
        {"anyOf", json::array{json::object{{"$ref", "#"}}, json::object{{"type", "null"}}}}};
  }
  json::object schema{{"type", "object"}, {"properties", properties}};
  if (!required.empty()) schema["required"] = required;
  if (random.percent(10)) schema["additionalProperties"] = random.percent(50);
  if (random.percent(20)) schema["description"] = short_text(random);
  return schema;
}

}  // namespace

json::value random_json(Random& random, int depth) {
  switch (random.below(depth > 0 ? 8 : 5)) {
    case 0:
      return nullptr;
    case 1:
      return random.percent(50);
    case 2:
      return static_cast<std::int64_t>(random.next());
    case 3:
      return static_cast<double>(fraction(random)) * 1e6;
    case 4:
      return json::value(short_text(random));
    case 5: {
      json::array array;
      const auto count = random.below(5);
      for (std::uint64_t i = 0; i < count; ++i) array.push_back(random_json(random, depth - 1));
      return array;
    }
    default: {
      json::object object;
      const auto count = random.below(5);
      for (std::uint64_t i = 0; i < count; ++i) {
        object[short_text(random)] = random_json(random, depth - 1);
      }
      return object;
    }
  }
}

json::object random_schema(Random& random, int depth) {
  switch (random.below(depth > 0 ? 12 : 7)) {
    case 0:
    case 1:
      return text_schema(random);
    case 2:
      return number_schema(random);
    case 3:
      return enum_schema(random);
    case 4:
      return {{"const", random_json(random, 1)}};
    case 5:
      return {{"type", one_text(random, {"boolean", "null"})}};
    case 6:
      return {{"type", json::array{"integer", "null", "boolean"}}};
    case 7:
      return array_schema(random, depth);
    case 8:
      // Told apart by the first character.
      return {{"anyOf", json::array{number_schema(random), json::object{{"type", "null"}},
                                    text_schema(random)}}};
    default:
      return object_schema(random, depth);
  }
}

std::string broken_schema(Random& random) {
  auto schema = random_schema(random, 2);
  switch (random.below(12)) {
    case 0:
      return broken_text(random);
    case 1:
      return random_text(random, 100) + "{";
    case 2:
      schema[one_text(random, {"not", "if", "patternProperties", "multipleOf", "contains",
                               "minProperties", "unevaluatedItems", "dependentRequired"})] =
          random_json(random, 1);
      break;
    case 3:
      schema = {{"type", "integer"}, {"minimum", 10}, {"maximum", 3}};
      break;
    case 4:
      schema = {{"type", "string"},
                {"pattern",
                 one_text(random, {"(", "[a", "a{3,1}", "\\b", "*", "(?=x)", "\\p{L}", "a$b"})}};
      break;
    case 5:
      schema = {{"$ref", one_text(random, {"#", "#/nowhere", "http://x/y", "#/$defs/%zz", ""})}};
      break;
    case 6:
      schema = {{"type", "array"}, {"minItems", 9'000'000'000}};
      break;
    case 7: {
      std::string deep;
      const auto levels = any_size(random, 200, 50'000);
      for (std::uint64_t i = 0; i < levels; ++i) deep += R"({"items":)";
      return deep;
    }
    case 8:
      schema = {{"enum", json::array{}}};
      break;
    case 9:
      schema = {{"type", random_json(random, 1)}};
      break;
    case 10:
      return json::serialize(random_json(random, 3));
    default: {
      auto text = json::serialize(schema);
      text.erase(random.below(text.size()), 1);
      return text;
    }
  }
  return json::serialize(schema);
}

}  // namespace berth::stress
