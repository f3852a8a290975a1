#pragma once

#include <boost/json/value.hpp>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "common/result.h"

namespace berth::worker {

struct SchemaBounds {
  static constexpr std::size_t kBytes = std::size_t{256} << 10U;
  static constexpr std::size_t kDepth = 128;         // of brackets in the JSON text
  static constexpr std::size_t kProperties = 1'000;  // of one object
  static constexpr std::size_t kValues = 10'000;     // of one enum
  static constexpr std::size_t kAlternatives = 256;  // of one anyOf, those within it included
  // Bytes of schemas that are compared and merged in one conversion.
  static constexpr std::size_t kWork = std::size_t{32} << 20U;
};

// A JSON schema whose keywords are all supported and have values of the right kind, and whose $ref
// all lead to a schema. Owns the parsed text. Immutable: any thread.
class SchemaDocument {
 public:
  // Errors: kInvalidArgument; names the keyword, where it stands as a JSON pointer, and what to do.
  static Result<SchemaDocument> parse(std::string_view text);

  [[nodiscard]] const boost::json::value& root() const { return root_; }
  // What "#", "#/$defs/a" … lead to; null where there is nothing. Valid as long as the document.
  [[nodiscard]] const boost::json::value* find(std::string_view reference) const;

 private:
  explicit SchemaDocument(boost::json::value root) : root_(std::move(root)) {}

  boost::json::value root_;
};

// "The schema's #/properties/a: what." with kInvalidArgument.
tl::unexpected<Error> schema_error(std::string_view pointer, const std::string& what);

// A pointer as errors show it, to be kept: of a long one only the begin, so that what is still to
// do does not hold a long name many times.
std::string shown_pointer(std::string_view pointer);

// The pointer of a member or of an element, "~" and "/" escaped as RFC 6901 has it; as
// shown_pointer().
std::string child_pointer(std::string_view pointer, std::string_view key);

// Parses JSON within the bounds of a schema; `what` ("The schema") begins the message of an error.
Result<boost::json::value> parse_bounded_json(std::string_view text, const std::string& what);

// JSON without white space; numbers as short as they read back.
std::string json_text(const boost::json::value& value);

// What a keyword holds.
enum class KeywordShape {
  kUnknown,     // not supported
  kAnnotation,  // says nothing about which values are valid
  kDefinitions,
  kSchema,
  kSchemaList,
  kSchemaMap,
  kReference,
  kType,
  kValue,
  kValueList,
  kNames,
  kCount,
  kNumber,
  kText,
  kFlag,
  kFalse,  // supported only where it is switched off
};
KeywordShape keyword_shape(std::string_view keyword);

}  // namespace berth::worker
