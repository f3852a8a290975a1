#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.h"
#include "worker/engine/llama_handles.h"
#include "worker/engine/llama_vocabulary.h"
#include "worker/engine/sampling.h"
#include "worker/engine/token_starts.h"

namespace berth::worker {

// Which tokens a grammar allows next. One generation, one thread; no longer than the model. Owns
// libllama's grammar sampler. Its functions but make() may throw std::exception; then it is used no
// more.
//
// With triggers the grammar sleeps until the text has one of them. We look for them ourselves: what
// libllama does (a regular expression over all of the answer for every token) takes time that grows
// with the square of the answer. Only then libllama's lazy grammar is made and fed, of which the
// rule `trigger root` is asked, as it begins with the trigger itself.
class GrammarGate {
 public:
  // `starts` may be null: then all tokens are possible. Errors: kInvalidArgument, where libllama
  // refuses the grammar.
  static Result<std::unique_ptr<GrammarGate>> make(const llama_vocab* vocabulary,
                                                   const std::string& grammar,
                                                   const std::vector<std::string>& triggers,
                                                   const TokenStarts* starts);

  // Whether it waits for a trigger; then only allows() can say what it refuses.
  [[nodiscard]] bool waits() const { return active_ == nullptr; }

  // Whether `token` may come next. Waiting, everything may but a token that completes a trigger and
  // goes on with a text that the grammar refuses.
  bool allows(TokenId token);
  // Makes the logits of what may not come next -infinity; not while it waits.
  void mark_refused(std::span<llama_token_data> candidates);
  // Tokens among which are all that may come next; nothing where any may. For the time until the
  // next call; not while it waits.
  std::optional<std::span<const TokenId>> possible();
  // `token`, which it allows, has come.
  void accept(TokenId token);

 private:
  GrammarGate(const llama_vocab* vocabulary, std::string grammar,
              std::vector<std::string> triggers);

  [[nodiscard]] SamplerPointer make_lazy() const;
  // Appends the token's bytes to `out`, those of control tokens, too.
  void append_text(TokenId token, std::string& out) const;
  // Whether the text behind the last tokens completes a trigger with this one.
  bool completes_trigger(TokenId token);
  // The grammar behind the trigger that `token` completes; null where it refuses what follows it.
  SamplerPointer start_behind(TokenId token);
  void remember(TokenId token);

  LlamaVocabulary vocabulary_;
  const TokenStarts* starts_ = nullptr;
  std::vector<llama_token_data> characters_;
  std::vector<TokenId> possible_;
  std::string grammar_;
  std::string root_;  // of the lazy grammar
  std::vector<std::string> triggers_;
  std::vector<std::string> patterns_;  // the triggers as regular expressions
  std::size_t longest_trigger_ = 0;    // bytes

  SamplerPointer active_;

  // While it waits: the last tokens, whole ones, as many as a trigger could have begun in.
  std::vector<std::pair<TokenId, std::size_t>> tail_;  // with their bytes
  std::string tail_text_;
  // What allows() has made for the token that it was asked about.
  SamplerPointer started_;
  TokenId started_by_ = LLAMA_TOKEN_NULL;
};

}  // namespace berth::worker
