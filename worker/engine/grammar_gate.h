#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"
#include "llama.h"
#include "worker/engine/llama_vocabulary.h"
#include "worker/engine/sampling.h"
#include "worker/engine/token_starts.h"
#include "worker/grammar/grammar_place.h"

namespace berth::worker {

// Which tokens a grammar allows next. One generation, one thread; no longer than the model.
//
// It is our own reading of the grammar (GbnfStates) and not libllama's sampler, whose accept and
// apply take a time that can double with every character, without a bound and deaf to deadlines.
//
// With triggers the grammar sleeps until the text has one of them, and then begins with what
// follows it.
class GrammarGate {
 public:
  // `starts` may be null: then all tokens are possible. Errors: kInvalidArgument where the grammar
  // cannot be used, or a trigger is not UTF-8.
  static Result<std::unique_ptr<GrammarGate>> make(const llama_vocab* vocabulary,
                                                   const std::string& grammar,
                                                   const std::vector<std::string>& triggers,
                                                   const TokenStarts* starts);

  // Whether it waits for a trigger; then only allows() can say what it refuses.
  [[nodiscard]] bool waits() const { return !place_; }

  // Whether `token` may come next. Waiting, everything may but a token that completes a trigger and
  // goes on with a text that the grammar refuses. What is too ambiguous to know is allowed here,
  // and accept()'s error.
  bool allows(TokenId token);
  // Makes the logits of what may not come next -infinity; not while it waits. Bounded in time for
  // all together: what it has not come to is left as it is, so allows() has the last word.
  void mark_refused(std::span<llama_token_data> candidates);
  // Tokens among which are all that may come next; nothing where any may. For the time until the
  // next call; not while it waits.
  std::optional<std::span<const TokenId>> possible();
  // `token`, which it allows, has come. Errors: kInvalidArgument, where the grammar is too
  // ambiguous for what has been written; kInternal, where it does not allow the token. Then it is
  // used no more.
  Status accept(TokenId token);

 private:
  GrammarGate(LlamaVocabulary vocabulary, GbnfStates states, std::vector<std::string> triggers);

  // There is time for another one, and memory: other states than the present one may be forgotten.
  void begin_question();
  [[nodiscard]] GrammarPlace after(TokenId token);
  [[nodiscard]] bool refuses(TokenId token);
  // The token's bytes, those of control tokens, too; until the next call.
  const std::string& text_of(TokenId token);
  // Where the text behind the last tokens and this one stands, if it completes a trigger.
  std::optional<GrammarPlace> after_trigger(TokenId token);
  void remember(TokenId token);

  LlamaVocabulary vocabulary_;
  GbnfStates states_;
  const TokenStarts* starts_ = nullptr;
  std::vector<TokenId> possible_;
  std::string text_;

  std::optional<GrammarPlace> place_;  // nothing: it waits
  std::size_t characters_ = 0;         // that the grammar has read

  std::vector<std::string> triggers_;
  std::size_t longest_trigger_ = 0;  // bytes
  std::string tail_;                 // while it waits: the last bytes, in which one may have begun
};

}  // namespace berth::worker
