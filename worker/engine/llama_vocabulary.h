#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "worker/engine/engine.h"
#include "worker/engine/prompt_part.h"
#include "worker/engine/sampling.h"

struct llama_vocab;

namespace berth::worker {

// A model's vocabulary: the functions of Engine that need nothing else. Owns nothing; any thread,
// as long as the model lives.
class LlamaVocabulary {
 public:
  explicit LlamaVocabulary(const llama_vocab* vocabulary) : vocabulary_(vocabulary) {}

  [[nodiscard]] const llama_vocab* get() const { return vocabulary_; }
  [[nodiscard]] std::uint32_t size() const;
  // As the vocabulary writes a token; empty for LLAMA_TOKEN_NULL.
  [[nodiscard]] std::string text(TokenId token) const;

  [[nodiscard]] Result<std::vector<TokenId>> tokenize(std::string_view text,
                                                      bool add_special) const;
  [[nodiscard]] Result<std::vector<TokenId>> tokenize_whole(std::string_view text) const {
    return run_tokenizer(text, true, false);
  }
  [[nodiscard]] Result<std::vector<TokenId>> tokenize_parts(std::span<const PromptPart> parts,
                                                            bool add_special) const;
  [[nodiscard]] std::vector<std::string> control_texts() const;
  [[nodiscard]] std::optional<TokenId> control_token(std::string_view text) const;
  void append_piece(TokenId token, std::string& out, bool show_control) const;
  [[nodiscard]] bool ends_generation(TokenId token) const;
  [[nodiscard]] TokenBytes token_bytes() const;

 private:
  [[nodiscard]] Result<std::vector<TokenId>> run_tokenizer(std::string_view text, bool add_special,
                                                           bool parse_special) const;
  // Tokens of a text, or of the first piece of one, that is to be continued.
  [[nodiscard]] Result<std::vector<TokenId>> tokenize_open(std::string_view text, bool add_special,
                                                           bool parse_special) const;
  // Tokens of a piece that stands behind others: without the space that SPM tokenizers put in front
  // of every text.
  [[nodiscard]] Result<std::vector<TokenId>> tokenize_behind(std::string_view text,
                                                             bool parse_special) const;

  const llama_vocab* vocabulary_;
};

}  // namespace berth::worker
