// Random schemas: their grammars take the documents that the schema allows, and no others.

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <boost/json/parse.hpp>

#include <cstdint>
#include <string>

#include "common/text.h"
#include "tests/unit/worker/grammar/accepts.h"
#include "tests/unit/worker/grammar/schema_samples.h"
#include "worker/grammar/schema_document.h"

namespace berth::worker {
namespace {

namespace json = boost::json;

TEST(SchemaProperty, TakesWhatConformsAndNothingElse) {
  EXPECT_TRUE(rc::check("a grammar takes what its schema allows", [](std::uint64_t seed) {
    test::SchemaSamples samples(seed);
    const auto schema = samples.document_schema();
    const auto schema_text = json_text(schema);
    const auto grammar = json_schema_to_gbnf(schema_text);
    RC_LOG() << schema_text << "\n";
    if (!grammar) RC_FAIL(grammar.error().message);
    RC_ASSERT(check_gbnf(*grammar, GbnfBounds::kConverterBytes).has_value());
    test::GbnfMatcher matcher(*grammar);
    for (int i = 0; i < 6; ++i) {
      const auto value = samples.value_of(schema);
      RC_ASSERT(test::is_valid(schema, value, schema));
      const auto compact = json_text(value);
      RC_LOG() << compact << "\n";
      RC_ASSERT(matcher.matches(compact));
      // Values of an enum stand as the schema has them, without white space.
      const auto spaced = test::spaced_text(value);
      if (schema_text.find("enum") == std::string::npos &&
          schema_text.find("const") == std::string::npos) {
        RC_ASSERT(matcher.matches(spaced));
      }
      for (int k = 0; k < 8; ++k) {
        const auto damaged = samples.damaged(k % 2 == 0 ? compact : spaced);
        json::error_code error;
        const auto parsed = json::parse(damaged, error);
        const bool broken = error || !test::is_valid(schema, parsed, schema);
        // A character that was cut is no text, which is all that a grammar sees.
        if (!broken || first_invalid_utf8(damaged)) continue;
        RC_LOG() << damaged << "\n";
        RC_ASSERT(!matcher.matches(damaged));
      }
    }
  }));
}

}  // namespace
}  // namespace berth::worker
