#include "worker/grammar/schema_document.h"

#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <cmath>
#include <utility>

#include "common/text.h"

namespace berth::worker {
namespace json = boost::json;
namespace {

struct Keyword {
  std::string_view name;
  KeywordShape shape;
};

using Shape = KeywordShape;
constexpr std::array kKeywords = {
    Keyword{"$comment", Shape::kAnnotation},
    Keyword{"$defs", Shape::kDefinitions},
    Keyword{"$id", Shape::kAnnotation},
    Keyword{"$ref", Shape::kReference},
    Keyword{"$schema", Shape::kAnnotation},
    Keyword{"additionalProperties", Shape::kSchema},
    Keyword{"allOf", Shape::kSchemaList},
    Keyword{"anyOf", Shape::kSchemaList},
    Keyword{"const", Shape::kValue},
    Keyword{"default", Shape::kAnnotation},
    Keyword{"definitions", Shape::kDefinitions},
    Keyword{"deprecated", Shape::kAnnotation},
    Keyword{"description", Shape::kAnnotation},
    Keyword{"enum", Shape::kValueList},
    Keyword{"example", Shape::kAnnotation},
    Keyword{"examples", Shape::kAnnotation},
    Keyword{"exclusiveMaximum", Shape::kNumber},
    Keyword{"exclusiveMinimum", Shape::kNumber},
    Keyword{"format", Shape::kText},
    Keyword{"items", Shape::kSchema},
    Keyword{"maxItems", Shape::kCount},
    Keyword{"maxLength", Shape::kCount},
    Keyword{"maximum", Shape::kNumber},
    Keyword{"minItems", Shape::kCount},
    Keyword{"minLength", Shape::kCount},
    Keyword{"minimum", Shape::kNumber},
    Keyword{"nullable", Shape::kFlag},
    Keyword{"oneOf", Shape::kSchemaList},
    Keyword{"pattern", Shape::kText},
    Keyword{"prefixItems", Shape::kSchemaList},
    Keyword{"properties", Shape::kSchemaMap},
    Keyword{"readOnly", Shape::kAnnotation},
    Keyword{"required", Shape::kNames},
    Keyword{"title", Shape::kAnnotation},
    Keyword{"type", Shape::kType},
    Keyword{"uniqueItems", Shape::kFalse},
    Keyword{"writeOnly", Shape::kAnnotation},
};

constexpr std::size_t kPointerBytes = 256;  // more than an error shows

bool all_finite(const json::value& value);

bool all_finite(const json::array& values) {
  for (const auto& one : values) {
    if (!all_finite(one)) return false;
  }
  return true;
}

// Numbers beyond the range of a double become infinite.
bool all_finite(const json::value& value) {
  if (value.is_double()) return std::isfinite(value.get_double());
  if (value.is_array()) return all_finite(value.get_array());
  if (value.is_object()) {
    for (const auto& member : value.get_object()) {
      if (!all_finite(member.value())) return false;
    }
  }
  return true;
}

// "%24" -> "$"; malformed escapes stay.
std::string without_percent(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size()) {
      const auto* begin = text.data() + i + 1;
      const auto [end, failure] = std::from_chars(begin, begin + 2, value, 16);
      if (failure == std::errc() && end == begin + 2) {
        plain += static_cast<char>(value);
        i += 2;
        continue;
      }
    }
    plain += text[i];
  }
  return plain;
}

void append_json(std::string& text, const json::value& value) {
  if (value.is_object()) {
    char before = '{';
    for (const auto& member : value.get_object()) {
      text += before;
      text += json::serialize(member.key());
      text += ':';
      append_json(text, member.value());
      before = ',';
    }
    text += value.get_object().empty() ? "{}" : "}";
  } else if (value.is_array()) {
    char before = '[';
    for (const auto& one : value.get_array()) {
      text += before;
      append_json(text, one);
      before = ',';
    }
    text += value.get_array().empty() ? "[]" : "]";
  } else if (value.is_double()) {
    std::array<char, 40> digits{};
    const auto end =
        std::to_chars(digits.data(), digits.data() + digits.size(), value.get_double()).ptr;
    text.append(digits.data(), end);
  } else {
    text += json::serialize(value);
  }
}

}  // namespace

KeywordShape keyword_shape(std::string_view keyword) {
  for (const auto& one : kKeywords) {
    if (one.name == keyword) return one.shape;
  }
  return keyword.starts_with("x-") ? Shape::kAnnotation : Shape::kUnknown;
}

tl::unexpected<Error> schema_error(std::string_view pointer, const std::string& what) {
  return fail(Reason::kInvalidArgument,
              "The schema's " + printable_line(pointer, 200) + ": " + what + ".");
}

std::string shown_pointer(std::string_view pointer) {
  if (pointer.size() <= kPointerBytes) return std::string(pointer);
  return std::string(pointer.substr(0, utf8_prefix(pointer, kPointerBytes))) + "…";
}

std::string child_pointer(std::string_view pointer, std::string_view key) {
  std::string child(pointer);
  if (child.size() > kPointerBytes) return shown_pointer(pointer);
  child += '/';
  for (const char c : key.substr(0, kPointerBytes + 1)) {
    if (c == '~') {
      child += "~0";
    } else if (c == '/') {
      child += "~1";
    } else {
      child += c;
    }
  }
  return shown_pointer(child);
}

Result<json::value> parse_bounded_json(std::string_view text, const std::string& what) {
  if (text.size() > SchemaBounds::kBytes) {
    return fail(Reason::kInvalidArgument,
                what + " has " + std::to_string(text.size()) + " bytes; at most " +
                    std::to_string(SchemaBounds::kBytes) + " (256 KiB) are allowed.");
  }
  json::parse_options options;
  options.max_depth = SchemaBounds::kDepth;
  json::error_code error;
  auto value = json::parse(json::string_view(text.data(), text.size()), error, {}, options);
  if (error == json::error::too_deep) {
    return fail(Reason::kInvalidArgument, what + " is nested deeper than " +
                                              std::to_string(SchemaBounds::kDepth) +
                                              " brackets; move inner parts to `$defs`.");
  }
  if (error) {
    return fail(Reason::kInvalidArgument, what + " is not valid JSON: " + error.message() + ".");
  }
  if (!all_finite(value)) {
    return fail(Reason::kInvalidArgument,
                what + " has a number beyond the range of a double; use a smaller one.");
  }
  return value;
}

std::string json_text(const json::value& value) {
  std::string text;
  append_json(text, value);
  return text;
}

const json::value* SchemaDocument::find(std::string_view reference) const {
  if (!reference.starts_with('#')) return nullptr;
  const auto pointer = without_percent(reference.substr(1));
  if (pointer.empty()) return &root_;
  if (pointer.front() != '/') return nullptr;
  json::error_code error;
  return root_.find_pointer(json::string_view(pointer.data(), pointer.size()), error);
}

}  // namespace berth::worker
