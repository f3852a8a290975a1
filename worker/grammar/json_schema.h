#pragma once

#include <string>
#include <string_view>

#include "common/result.h"

namespace berth::worker {

// How the documents of a grammar are wrapped: opening, then one document (with `before` and `after`
// around each) or several with `separator` between them, then closing. All are literal text in
// UTF-8, at most kWrapperBytes each.
struct GrammarForm {
  static constexpr std::size_t kWrapperBytes = 4'096;
  static constexpr int kDocuments = 64;  // at most, where repeated

  std::string opening;
  std::string before;
  std::string after;
  std::string separator;
  std::string closing;
  bool repeated = false;  // one document or more
};

// GBNF with the rule `root` for the JSON documents that a JSON schema describes (the vocabulary of
// draft 7 and 2020-12 as far as docs/structured-output.md lists it). Pure; any thread. Its time and
// memory are bounded by SchemaBounds and RuleBook's bounds. The result always passes check_gbnf.
//
// The grammar is stricter than the schema where a model needs it: properties in their order of
// declaration, none that are not declared unless `additionalProperties` allows them, little white
// space, at most 20 digits.
//
// Errors: kInvalidArgument; names the keyword and its place as a JSON pointer, or the bound.
Result<std::string> json_schema_to_gbnf(std::string_view schema_json);
Result<std::string> json_schema_to_gbnf(std::string_view schema_json, const GrammarForm& form);

// GBNF for any JSON object.
std::string any_json_grammar();

}  // namespace berth::worker
