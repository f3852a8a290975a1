#pragma once

#include <cstddef>
#include <string_view>

#include "common/result.h"
#include "worker/grammar/gbnf_model.h"

namespace berth::worker {

// Parses a grammar in GBNF (llama.cpp's grammars/README.md) and checks that an answer can be held
// to it: every rule defined, a rule `root`, no left recursion (also through rules that may be
// empty), and the bounds of GbnfBounds. What passes is taken by llama_sampler_init_grammar too,
// except that it may return NULL for a <token> that the model's vocabulary lacks. Any thread; time
// and memory grow with the bounds only. How ambiguous it is shows as it is used: see GbnfStates.
//
// Errors: kInvalidArgument, with the line and what to do.
Result<GbnfModel> checked_gbnf(std::string_view grammar,
                               std::size_t max_bytes = GbnfBounds::kClientBytes);

Status check_gbnf(std::string_view grammar, std::size_t max_bytes = GbnfBounds::kClientBytes);

}  // namespace berth::worker
