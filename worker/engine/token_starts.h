#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "worker/engine/llama_vocabulary.h"

namespace berth::worker {

// A vocabulary's tokens by the character that they begin with: where a grammar refuses a character,
// it refuses all tokens that begin with it, and asking about one of them is enough. Made at its
// first use, which takes some milliseconds. Any thread, as long as the model lives.
class TokenStarts {
 public:
  explicit TokenStarts(LlamaVocabulary vocabulary) : vocabulary_(vocabulary) {}

  // Tokens that are one ASCII character and no more, one for each that the vocabulary has.
  [[nodiscard]] std::span<const TokenId> characters() const;
  // The tokens that begin with that of characters()[index]; it is among them.
  [[nodiscard]] std::span<const TokenId> beginning_with(std::size_t index) const;
  // All others: those that end an answer, have no text, or begin with another character.
  [[nodiscard]] std::span<const TokenId> others() const;

 private:
  void make() const;

  LlamaVocabulary vocabulary_;
  mutable std::once_flag once_;
  mutable std::vector<TokenId> characters_;
  mutable std::vector<TokenId> tokens_;      // group by group, others() last
  mutable std::vector<std::size_t> starts_;  // of the groups in tokens_, and its end
};

}  // namespace berth::worker
