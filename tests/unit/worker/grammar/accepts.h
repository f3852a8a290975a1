#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/unit/worker/grammar/gbnf_matcher.h"
#include "worker/grammar/gbnf_check.h"
#include "worker/grammar/json_schema.h"

namespace berth::worker::test {

// The grammar of a schema; fails the test where there is none, or where the guard refuses it.
inline std::string grammar_of(std::string_view schema) {
  const auto grammar = json_schema_to_gbnf(schema);
  if (!grammar) {
    ADD_FAILURE() << schema << ": " << grammar.error().message;
    return "root ::= \"\"";
  }
  const auto checked = check_gbnf(*grammar, GbnfBounds::kConverterBytes);
  EXPECT_TRUE(checked) << checked.error().message << "\n" << *grammar;
  return *grammar;
}

// Whether the grammar of a schema takes a text.
inline bool accepts(std::string_view schema, std::string_view text) {
  return GbnfMatcher(grammar_of(schema)).matches(text);
}

// The message that a schema is refused with.
inline std::string refusal(std::string_view schema) {
  const auto grammar = json_schema_to_gbnf(schema);
  if (grammar) return "taken";
  EXPECT_EQ(grammar.error().reason, Reason::kInvalidArgument);
  return grammar.error().message;
}

}  // namespace berth::worker::test
