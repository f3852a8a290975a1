#pragma once

#include <cstdint>

#include "common/result.h"
#include "tests/models/gguf_writer.h"

namespace berth::test_models {

// BPE and SPM know every byte, so that any UTF-8 text can be tokenized, and the control tokens of
// ChatML. WPM knows ASCII in lower case; anything else is its unknown token.
enum class Tokenizer : std::uint8_t {
  kBpe,   // "gpt2" with the pre-tokenizer of llama 3
  kSpm,   // "llama", with byte fallback
  kWpm,   // "bert"
  kNone,  // no tokenizer keys at all
};

// How many tokens there are at the front that are no words: control tokens and bytes.
std::uint32_t special_tokens(Tokenizer tokenizer);
// The first tokens, which a model of ours never wants to say: control tokens.
std::uint32_t control_tokens(Tokenizer tokenizer);

// Writes the tokenizer's keys with `size` tokens: control tokens, bytes, and made up words.
// Errors: kInvalidArgument, where `size` is less than special_tokens().
Status set_tokenizer(GgufWriter& writer, Tokenizer tokenizer, std::uint32_t size);

// A word of the vocabulary: lower-case letters, different for each number.
std::string word(std::uint32_t number);

}  // namespace berth::test_models
