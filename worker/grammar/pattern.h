#pragma once

#include <string>
#include <string_view>

#include "common/result.h"
#include "worker/grammar/rule_book.h"

namespace berth::worker {

// GBNF for the JSON strings, with their quotes, whose text matches a regular expression of JSON
// Schema (ECMA-262). Supported: literals, `.`, classes with ranges and negation, \d \D \w \W \s \S
// (ASCII), \t \n \r \f \v \0 \xHH \uHHHH, escaped punctuation, groups ( ) and (?: ), alternatives,
// * + ? {m} {m,} {m,n} (lazy forms are the same), `^` and `$` at the ends of a whole alternative.
// As JSON Schema has it, an expression without anchors matches anywhere in the string.
//
// Errors: kInvalidArgument with `where` in front, says what is not supported and at which
// character: look-around, back-references, \b, named groups, Unicode properties, repetition of
// something that may be empty, counts above RuleBook::kLargestCount.
Result<std::string> pattern_to_gbnf(std::string_view pattern, const std::string& where,
                                    RuleBook& book);

}  // namespace berth::worker
