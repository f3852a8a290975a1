#pragma once

#include <boost/json.hpp>
#include <string>

#include "tests/stress/chance.h"

namespace berth::stress {

// Any JSON value.
boost::json::value random_json(Random& random, int depth);

// A JSON schema of the keywords that docs/structured-output.md lists. Documents that are told apart
// late and nest in themselves are not among them.
boost::json::object random_schema(Random& random, int depth);

// A text that is no such schema: unsupported keywords, wrong types, contradictions, no JSON.
std::string broken_schema(Random& random);

}  // namespace berth::stress
