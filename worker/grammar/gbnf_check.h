#pragma once

#include <cstddef>
#include <string_view>

#include "common/result.h"
#include "worker/grammar/gbnf_model.h"

namespace berth::worker {

// Whether libllama can take a grammar in GBNF (llama.cpp's grammars/README.md) without abort, hang
// or exhaustion: syntax, every rule defined, a rule `root`, no left recursion (also through rules
// that may be empty), and the bounds of GbnfBounds. What passes is taken by
// llama_sampler_init_grammar, except that it may still return NULL for a <token> that the model's
// vocabulary lacks. Any thread; time and memory grow with the bounds only.
//
// Not covered: a grammar that lets many rules be open at once in many ways, such as
// `r ::= "(" r "+" | "(" r "-" | "x"`, makes libllama's state grow with every character.
//
// Errors: kInvalidArgument, with the line and what to do.
Status check_gbnf(std::string_view grammar, std::size_t max_bytes = GbnfBounds::kClientBytes);

}  // namespace berth::worker
