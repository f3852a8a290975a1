#pragma once

#include <string>

#include "tests/stress/chance.h"

namespace berth::stress {

struct GrammarLimits {
  std::uint64_t vocabulary = 1;  // tokens
  // Also grammars whose texts can be read in ever more ways as they nest, which libllama's state
  // grows with.
  bool ambiguous = false;
};

// GBNF with the rule `root`: recursion, repetitions, classes, tokens. It may describe texts without
// an end.
std::string random_grammar(Random& random, const GrammarLimits& limits);

// GBNF that has one thing wrong: syntax, rules, recursion, numbers, bytes.
std::string broken_grammar(Random& random, const GrammarLimits& limits);

}  // namespace berth::stress
