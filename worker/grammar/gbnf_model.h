#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "worker/grammar/code_points.h"

namespace berth::worker {

// What a grammar may have. Repetitions are those of libllama, whose parser writes out every {m,n},
// refuses products above 2,000 rules (MAX_REPETITION_THRESHOLD in its src/llama-grammar.cpp) and
// silently takes a larger maximum as none; the others keep its recursive functions within a
// thread's stack, and its search for left recursion, which visits a rule once per path, within
// milliseconds.
struct GbnfBounds {
  static constexpr std::size_t kClientBytes = std::size_t{256} << 10U;
  static constexpr std::size_t kConverterBytes = std::size_t{1} << 20U;
  static constexpr std::size_t kNameBytes = 256;  // of a rule
  static constexpr std::size_t kRules = 50'000;   // with those that libllama makes of ( ) and {m,n}
  static constexpr std::size_t kElements =
      500'000;                         // characters, ranges and references, written out
  static constexpr int kGroups = 100;  // parentheses within parentheses
  static constexpr std::uint64_t kRepetitions = 2'000;
  static constexpr std::uint64_t kPaths = 4'096;  // alternatives that may begin at one place
  static constexpr std::uint64_t kAllPaths = std::uint64_t{1} << 22U;
  static constexpr std::uint32_t kChain = 2'000;  // rules that begin with one another
};

// One step of a rule.
struct GbnfElement {
  enum class Kind : std::uint8_t { kCharacter, kClass, kToken, kReference, kAlternative };
  Kind kind = Kind::kCharacter;
  // kCharacter: the code point; kClass, kToken, kReference: index of the class, token or rule.
  std::uint32_t value = 0;
};

// <[42]>, <text>, and with ! in front any other token.
struct GbnfToken {
  std::string text;      // with its < >; empty where it has a number
  std::uint32_t id = 0;  // where it has a number
  bool any_other = false;
  std::size_t line = 0;
};

struct GbnfRule {
  std::vector<GbnfElement> elements;
  std::uint32_t owner = 0;  // the rule of the text that it was made for
  std::size_t line = 0;     // where it is defined, or first used; from 1
  bool defined = false;
  bool repeats = false;  // made for * + {m,}: its last element leads back to itself
};

// A grammar as libllama expands it: rules of the text and rules made for groups and repetitions.
struct GbnfModel {
  std::vector<GbnfRule> rules;
  std::vector<std::string> names;                         // of the rules; empty for those made
  std::vector<std::vector<CodePointSet::Range>> classes;  // in order, apart from one another
  std::vector<GbnfToken> tokens;
};

// Parses GBNF. Any thread; the depth of recursion is bounded.
// Errors: kInvalidArgument with the line and what was expected there, or which bound is passed.
Result<GbnfModel> parse_gbnf(std::string_view grammar, std::size_t max_bytes);

// kInvalidArgument "The grammar's line 3: what."
tl::unexpected<Error> gbnf_error(std::size_t line, const std::string& what);

// A part of a grammar as errors show it: the begin of it, in `…`.
std::string gbnf_quoted(std::string_view text);

}  // namespace berth::worker
