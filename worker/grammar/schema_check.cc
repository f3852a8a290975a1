// SchemaDocument::parse: every keyword that can be reached is known and has the right kind of
// value.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/text.h"
#include "worker/grammar/rule_book.h"
#include "worker/grammar/schema_document.h"

namespace berth::worker {
namespace json = boost::json;
namespace {

using Shape = KeywordShape;

struct Hint {
  std::string_view keyword;
  std::string_view advice;
};

constexpr std::array kHints = {
    Hint{"patternProperties", "list the names in `properties`, or use `additionalProperties`"},
    Hint{"propertyNames", "list the names in `properties`"},
    Hint{"minProperties", "use `required`"},
    Hint{"maxProperties", "list the properties and set `additionalProperties` to false"},
    Hint{"additionalItems", "use `prefixItems` and `items`"},
    Hint{"multipleOf", "use `enum` where there are few values"},
    Hint{"not", "say what is allowed instead, with `anyOf` or `enum`"},
    Hint{"if", "use `anyOf`"},
    Hint{"then", "use `anyOf`"},
    Hint{"else", "use `anyOf`"},
    Hint{"dependentRequired", "use `anyOf`"},
    Hint{"dependentSchemas", "use `anyOf`"},
    Hint{"dependencies", "use `anyOf`"},
    Hint{"$dynamicRef", "use `$ref`"},
    Hint{"$anchor", "refer to it with a JSON pointer, as in `#/$defs/name`"},
};

constexpr std::array<std::string_view, 7> kTypes = {"object",  "array",   "string", "number",
                                                    "integer", "boolean", "null"};

std::string quoted(std::string_view text) {
  return "`" + printable_line(text, 60) + "`";
}

bool is_type(const json::value& value) {
  return value.is_string() && std::find(kTypes.begin(), kTypes.end(),
                                        std::string_view(value.get_string())) != kTypes.end();
}

class SchemaCheck {
 public:
  explicit SchemaCheck(const SchemaDocument& document) : document_(document) {}

  Status run() {
    if (auto checked = schema(document_.root(), "#"); !checked) return checked;
    while (!references_.empty()) {
      const auto reference = std::move(references_.back());
      references_.pop_back();
      if (auto checked = schema(*document_.find(reference), reference); !checked) return checked;
    }
    return {};
  }

 private:
  // The recursion is bounded by the depth of the JSON text.
  Status schema(const json::value& value, const std::string& pointer);
  Status keyword(std::string_view name, const json::value& value, const std::string& pointer);
  Status schemas(std::string_view name, const json::value& value, const std::string& pointer);
  Status reference(const json::value& value, const std::string& pointer);
  static Status scalar(Shape shape, std::string_view name, const json::value& value,
                       const std::string& pointer);
  static Status type(const json::value& value, const std::string& pointer);
  static Status distinct_types(const json::array& list, const std::string& pointer);
  static Status values(const json::value& value, const std::string& pointer);
  static Status names(const json::value& value, const std::string& pointer);
  static Status count(std::string_view name, const json::value& value, const std::string& pointer);

  const SchemaDocument& document_;
  std::vector<std::string> references_;
  std::unordered_set<const json::value*> seen_;
};

Status SchemaCheck::schema(const json::value& value, const std::string& pointer) {
  if (value.is_bool()) return {};
  if (!value.is_object()) return schema_error(pointer, "a schema must be an object, true or false");
  for (const auto& member : value.get_object()) {
    const std::string_view name(member.key().data(), member.key().size());
    if (auto checked = keyword(name, member.value(), pointer); !checked) return checked;
  }
  return {};
}

Status SchemaCheck::keyword(std::string_view name, const json::value& value,
                            const std::string& pointer) {
  const auto shape = keyword_shape(name);
  switch (shape) {
    case Shape::kUnknown: {
      std::string_view advice = "leave it out";
      for (const auto& hint : kHints) {
        if (hint.keyword == name) advice = hint.advice;
      }
      return schema_error(pointer, quoted(name) + " is not supported; " + std::string(advice));
    }
    case Shape::kAnnotation:
    case Shape::kDefinitions:
    case Shape::kValue:
      return {};
    case Shape::kSchema:
      return schema(value, child_pointer(pointer, name));
    case Shape::kSchemaList:
    case Shape::kSchemaMap:
      return schemas(name, value, pointer);
    case Shape::kReference:
      return reference(value, pointer);
    case Shape::kType:
      return type(value, pointer);
    case Shape::kValueList:
      return values(value, pointer);
    case Shape::kNames:
      return names(value, pointer);
    case Shape::kCount:
      return count(name, value, pointer);
    case Shape::kNumber:
    case Shape::kText:
    case Shape::kFlag:
    case Shape::kFalse:
      return scalar(shape, name, value, pointer);
  }
  return {};
}

Status SchemaCheck::schemas(std::string_view name, const json::value& value,
                            const std::string& pointer) {
  const auto below = child_pointer(pointer, name);
  if (name == "properties") {
    if (!value.is_object()) return schema_error(pointer, "`properties` must be an object");
    if (value.get_object().size() > SchemaBounds::kProperties) {
      return schema_error(pointer, "`properties` has " + std::to_string(value.get_object().size()) +
                                       " members; at most " +
                                       std::to_string(SchemaBounds::kProperties) + " are allowed");
    }
    for (const auto& member : value.get_object()) {
      const std::string_view key(member.key().data(), member.key().size());
      if (auto checked = schema(member.value(), child_pointer(below, key)); !checked)
        return checked;
    }
    return {};
  }
  if (!value.is_array() || value.get_array().empty()) {
    return schema_error(pointer, quoted(name) + " must be an array of at least one schema");
  }
  const auto& list = value.get_array();
  if (list.size() > SchemaBounds::kAlternatives) {
    return schema_error(pointer, quoted(name) + " has " + std::to_string(list.size()) +
                                     " schemas; at most " +
                                     std::to_string(SchemaBounds::kAlternatives) +
                                     " are allowed (values that are constant go into one `enum`)");
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (auto checked = schema(list[i], child_pointer(below, std::to_string(i))); !checked) {
      return checked;
    }
  }
  return {};
}

Status SchemaCheck::reference(const json::value& value, const std::string& pointer) {
  if (!value.is_string()) return schema_error(pointer, "`$ref` must be a string");
  const std::string target(value.get_string());
  if (!target.starts_with('#')) {
    return schema_error(pointer, "`$ref` " + quoted(target) +
                                     " leads out of the schema, which is not supported; copy what "
                                     "it means into `$defs`");
  }
  const auto* found = document_.find(target);
  if (found == nullptr) {
    return schema_error(pointer, "`$ref` " + quoted(target) +
                                     " leads nowhere; write it as `#`, `#/$defs/name` or another "
                                     "JSON pointer");
  }
  if (seen_.insert(found).second) references_.push_back(target);
  return {};
}

Status SchemaCheck::type(const json::value& value, const std::string& pointer) {
  bool good = is_type(value);
  if (value.is_array()) {
    const auto& list = value.get_array();
    good = !list.empty() && std::all_of(list.begin(), list.end(), is_type);
  }
  if (good && value.is_array()) return distinct_types(value.get_array(), pointer);
  if (good) return {};
  return schema_error(pointer,
                      "`type` must be object, array, string, number, integer, boolean or null, or "
                      "an array of these");
}

// JSON Schema wants them so, and each one costs a look at all other keywords.
Status SchemaCheck::distinct_types(const json::array& list, const std::string& pointer) {
  std::unordered_set<std::string_view> names;
  for (const auto& one : list) {
    const std::string_view name(one.get_string());
    if (names.insert(name).second) continue;
    return schema_error(pointer,
                        "`type` lists " + quoted(name) + " more than once; drop the others");
  }
  return {};
}

Status SchemaCheck::values(const json::value& value, const std::string& pointer) {
  if (!value.is_array() || value.get_array().empty()) {
    return schema_error(pointer, "`enum` must be an array of at least one value");
  }
  const auto size = value.get_array().size();
  if (size <= SchemaBounds::kValues) return {};
  return schema_error(pointer, "`enum` has " + std::to_string(size) + " values; at most " +
                                   std::to_string(SchemaBounds::kValues) + " are allowed");
}

Status SchemaCheck::names(const json::value& value, const std::string& pointer) {
  bool good = value.is_array();
  if (good) {
    const auto& list = value.get_array();
    good = list.size() <= SchemaBounds::kProperties &&
           std::all_of(list.begin(), list.end(), [](const auto& one) { return one.is_string(); });
  }
  if (good) return {};
  return schema_error(pointer, "`required` must be an array of at most " +
                                   std::to_string(SchemaBounds::kProperties) + " strings");
}

Status SchemaCheck::count(std::string_view name, const json::value& value,
                          const std::string& pointer) {
  const double number = value.is_number() ? value.to_number<double>() : -1;
  if (number < 0 || std::floor(number) < number) {
    return schema_error(pointer, quoted(name) + " must be a whole number, 0 or more");
  }
  if (name.starts_with("min") && number > static_cast<double>(RuleBook::kLargestCount)) {
    return schema_error(pointer, quoted(name) + " is above " +
                                     std::to_string(RuleBook::kLargestCount) +
                                     ", more than an answer can have; use a smaller one");
  }
  return {};
}

Status SchemaCheck::scalar(Shape shape, std::string_view name, const json::value& value,
                           const std::string& pointer) {
  if (shape == Shape::kNumber && !value.is_number()) {
    return schema_error(pointer, quoted(name) + " must be a number");
  }
  if (shape == Shape::kText && !value.is_string()) {
    return schema_error(pointer, quoted(name) + " must be a string");
  }
  if ((shape == Shape::kFlag || shape == Shape::kFalse) && !value.is_bool()) {
    return schema_error(pointer, quoted(name) + " must be true or false");
  }
  if (shape == Shape::kFalse && value.get_bool()) {
    return schema_error(pointer, quoted(name) +
                                     " is not supported; leave it out and check it "
                                     "in the answer");
  }
  return {};
}

}  // namespace

Result<SchemaDocument> SchemaDocument::parse(std::string_view text) {
  auto root = parse_bounded_json(text, "The schema");
  if (!root) return fail(root.error());
  SchemaDocument document(std::move(*root));
  if (auto checked = SchemaCheck(document).run(); !checked) return fail(checked.error());
  return document;
}

}  // namespace berth::worker
