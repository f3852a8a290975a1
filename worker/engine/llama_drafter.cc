#include "worker/engine/llama_drafter.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "worker/engine/best_logit.h"
#include "worker/engine/llama_kind.h"
#include "worker/engine/log_sum_exp.h"

namespace berth::worker {
namespace {

constexpr std::int32_t kMostTokensMore = 128;
constexpr std::int32_t kFirstCompared = 5;

std::string quoted(const char* text) {
  return "\"" + std::string(text == nullptr ? "" : text) + "\"";
}

}  // namespace

std::optional<std::string> vocabulary_difference(const llama_vocab* model,
                                                 const llama_vocab* draft) {
  if (llama_vocab_type(model) != llama_vocab_type(draft)) {
    return "its tokenizer is of another type";
  }
  const bool same_start =
      llama_vocab_get_add_bos(model) == llama_vocab_get_add_bos(draft) &&
      (!llama_vocab_get_add_bos(model) || llama_vocab_bos(model) == llama_vocab_bos(draft));
  const bool same_end =
      llama_vocab_get_add_eos(model) == llama_vocab_get_add_eos(draft) &&
      (!llama_vocab_get_add_eos(model) || llama_vocab_eos(model) == llama_vocab_eos(draft));
  if (!same_start || !same_end) return "its texts begin or end with other tokens";
  const auto size = llama_vocab_n_tokens(model);
  const auto draft_size = llama_vocab_n_tokens(draft);
  if (std::abs(size - draft_size) > kMostTokensMore) {
    return "it has " + std::to_string(draft_size) + " tokens instead of " + std::to_string(size);
  }
  for (auto token = kFirstCompared; token < std::min(size, draft_size); ++token) {
    const char* const text = llama_vocab_get_text(model, token);
    const char* const draft_text = llama_vocab_get_text(draft, token);
    if (std::string_view(text) != draft_text) {
      return "its token " + std::to_string(token) + " is " + quoted(draft_text) + " instead of " +
             quoted(text);
    }
  }
  return std::nullopt;
}

LlamaDrafter::LlamaDrafter(ModelPointer model, const Sizes& sizes, std::uint32_t sequences)
    : model_(std::move(model)),
      sizes_(sizes),
      vocabulary_(
          static_cast<std::uint32_t>(llama_vocab_n_tokens(llama_model_get_vocab(model_.get())))),
      batch_(sizes.batch),
      held_(sequences),
      used_(sequences) {}

std::unique_ptr<LlamaDrafter> LlamaDrafter::make(ModelPointer model, const EngineSettings& settings,
                                                 const Sizes& sizes, AbortCheck& abort_check) {
  auto drafter =
      std::unique_ptr<LlamaDrafter>(new LlamaDrafter(std::move(model), sizes, settings.sequences));
  auto parameters = context_parameters(settings, sizes.threads, abort_check);
  parameters.n_ctx = sizes.cells;
  parameters.n_seq_max = settings.sequences;
  parameters.n_batch = sizes.batch;
  parameters.n_ubatch = std::min(sizes.batch, kMicroBatch);
  parameters.n_outputs_max = settings.sequences;
  // Past the end of a table of positions libllama would abort the process.
  const auto kind = kind_of(drafter->model_.get(), EngineSettings{});
  if (kind && kind->fixed_window) {
    const auto trained = std::max(1, llama_model_n_ctx_train(drafter->model_.get()));
    drafter->sizes_.window = std::min(sizes.window, static_cast<std::uint32_t>(trained));
  }
  drafter->context_.reset(llama_init_from_model(drafter->model_.get(), parameters));
  return drafter->context_ ? std::move(drafter) : nullptr;
}

void LlamaDrafter::forget(SequenceId sequence) {
  if (sequence < 0 || static_cast<std::size_t>(sequence) >= held_.size()) return;
  llama_memory_seq_rm(llama_get_memory(context_.get()), sequence, -1, -1);
  held_[static_cast<std::size_t>(sequence)].clear();
}

// The model's own sequences come and go without a word here, so what others hold may be stale:
// where no cells are free, the longest unused is forgotten, and then the next.
bool LlamaDrafter::compute(SequenceId sequence) {
  while (true) {
    std::string ignored;
    bool no_cells = false;
    const auto outcome = batch_.compute(context_.get(), ignored, &no_cells);
    if (outcome != DecodeOutcome::kFailed) return outcome == DecodeOutcome::kDone;
    if (!no_cells) return false;
    std::optional<SequenceId> oldest;
    for (SequenceId other = 0; static_cast<std::size_t>(other) < held_.size(); ++other) {
      if (other == sequence || held_[static_cast<std::size_t>(other)].empty()) continue;
      if (!oldest ||
          used_[static_cast<std::size_t>(other)] < used_[static_cast<std::size_t>(*oldest)]) {
        oldest = other;
      }
    }
    if (!oldest) return false;
    forget(*oldest);
  }
}

bool LlamaDrafter::append(SequenceId sequence, std::span<const TokenId> tokens) {
  auto& held = held_[static_cast<std::size_t>(sequence)];
  while (!tokens.empty()) {
    const auto part = tokens.first(std::min<std::size_t>(tokens.size(), batch_.capacity()));
    tokens = tokens.subspan(part.size());
    batch_.clear();
    for (const auto token : part) {
      const bool last = tokens.empty() && batch_.size() + 1 == part.size();
      batch_.add({sequence, token, static_cast<std::uint32_t>(held.size() + batch_.size()), last});
    }
    if (!compute(sequence)) {
      // How much of the batch was computed is not known.
      held.resize(keep_prefix(context_.get(), sequence, static_cast<std::uint32_t>(held.size())));
      return false;
    }
    held.insert(held.end(), part.begin(), part.end());
  }
  return true;
}

DraftStep LlamaDrafter::hold(SequenceId sequence, std::span<const TokenId> tokens,
                             std::size_t most_read) {
  auto& held = held_[static_cast<std::size_t>(sequence)];
  const auto longest = std::min(held.size(), tokens.size() - 1);  // the last is computed anew
  const auto limit = held.begin() + static_cast<std::ptrdiff_t>(longest);
  const auto differs = std::mismatch(held.begin(), limit, tokens.begin());
  const auto common = static_cast<std::uint32_t>(differs.first - held.begin());
  held.resize(keep_prefix(context_.get(), sequence, common));
  const auto before = held.size();
  const auto unread = tokens.subspan(before);
  const bool read = append(sequence, unread.first(std::min(unread.size(), most_read)));
  DraftStep step;
  step.read = held.size() - std::min(before, held.size());
  step.caught_up = read && step.read == unread.size();
  return step;
}

std::optional<TokenId> LlamaDrafter::guess() const {
  const float* const values = llama_get_logits_ith(context_.get(), -1);
  if (values == nullptr) return std::nullopt;
  const std::span<const float> logits(values, vocabulary_);
  const auto best = best_logit(logits);
  if (!best || *best >= sizes_.vocabulary) return std::nullopt;
  const float probability = std::exp(-log_sum_over(logits, logits[*best]));
  if (!(probability >= kLeastDraftProbability)) return std::nullopt;
  return static_cast<TokenId>(*best);
}

DraftStep LlamaDrafter::draft(SequenceId sequence, std::span<const TokenId> tokens,
                              DraftLimits limits, std::vector<TokenId>& out) {
  const bool known = std::all_of(tokens.begin(), tokens.end(), [this](TokenId token) {
    return token >= 0 && static_cast<std::uint32_t>(token) < vocabulary_;
  });
  if (sequence < 0 || static_cast<std::size_t>(sequence) >= held_.size() || tokens.empty() ||
      tokens.size() >= sizes_.window || !known) {
    return {0, true};  // it will not have one later either
  }
  const auto most = std::min<std::size_t>(limits.proposals, sizes_.window - tokens.size());
  if (most == 0) return {};
  used_[static_cast<std::size_t>(sequence)] = ++calls_;
  const auto step = hold(sequence, tokens, limits.read);
  if (!step.caught_up) return step;
  const auto* const vocabulary = llama_model_get_vocab(model_.get());
  for (std::size_t i = 0; i < most; ++i) {
    const auto token = guess();
    if (!token || llama_vocab_is_eog(vocabulary, *token)) break;
    out.push_back(*token);
    if (i + 1 == most || !append(sequence, {&*token, 1})) break;
  }
  return step;
}

}  // namespace berth::worker
