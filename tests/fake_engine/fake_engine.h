#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/fake_engine/fake_settings.h"
#include "worker/engine/engine.h"

namespace berth::worker {

// An engine without a model, for tests, load tests and sanitizer builds. Its vocabulary is the 256
// bytes, kEnd and its control tokens. What it says next depends on every token that its sequence
// holds, so that a lane which loses, doubles or mixes up tokens gives another answer than
// answer_to(). It also checks how it is used: positions without gaps, never more cells than the
// pool has, and that a sampler is asked only about the very text that it has followed so far. What
// it finds goes to on_violation.
class FakeEngine : public Engine {
 public:
  static constexpr TokenId kEnd = 256;

  // Follows one text. The first `fail_after` samples succeed, the next fails as a grammar that
  // allows nothing does.
  struct FakeSampler final : Sampler {
    void accept_prompt(std::span<const TokenId> tokens) override;

    std::uint64_t seed = 0;  // 0: greedy
    std::optional<std::uint32_t> top_logprobs;
    std::uint64_t fail_after = ~std::uint64_t{0};
    std::uint64_t samples = 0;
    std::optional<std::vector<TokenId>> text;  // prompt and samples, once there was a prompt
    std::function<void()> on_prompt;
  };

  explicit FakeEngine(FakeSettings settings);
  explicit FakeEngine(std::uint32_t sequences, std::uint32_t window = 256,
                      std::uint32_t batch = 64);

  // What it says to a prompt until it ends by itself, with the settings' and the sampler's seed.
  static std::string answer_to(std::vector<TokenId> tokens, std::uint64_t seed = 0,
                               std::uint64_t sampler_seed = 0);
  // The first `count` tokens of what it says where it never ends an answer, greedy.
  static std::string endless_answer_to(const std::vector<TokenId>& tokens, std::size_t count,
                                       std::uint64_t seed = 0);

  // Called within decode() and embed(), on the context thread.
  std::function<void()> on_decode;
  std::function<void(std::span<const BatchItem>)> on_batch;
  // Before a sample: whose, and of which item of the last batch.
  std::function<void(const FakeSampler&, const BatchItem&)> on_sample;
  // Lets time pass; really, if not set.
  std::function<void(Duration)> pause;
  // It was used wrongly. If not set, the process says why and ends by SIGABRT.
  std::function<void(const std::string&)> on_violation;
  // What the draft model reads: the sequence, the first position, how many tokens.
  std::function<void(SequenceId, std::size_t, std::size_t)> on_draft_read;
  // Proposals instead of its own.
  std::function<void(std::span<const TokenId>, std::size_t, std::vector<TokenId>&)> on_draft;
  // It goes on until its window is full.
  std::atomic<bool> never_ends{false};
  // The next decode() or embed() says so.
  std::atomic<bool> fail_next{false};
  // embed() fails where an input has this token.
  std::optional<TokenId> failing_token;
  // An input with this token has no usable embedding, nor have those beside it.
  std::optional<TokenId> unusable_token;
  // keep_prefix() keeps nothing, as with recurrent models.
  std::atomic<bool> keeps_nothing{false};
  std::atomic<std::uint64_t> decodes{0};
  std::atomic<std::uint64_t> computed_tokens{0};
  std::atomic<std::uint64_t> copied_tokens{0};
  std::atomic<std::uint32_t> compute_threads{0};  // as set last
  [[nodiscard]] bool abort_wanted() const { return abort_check_ && abort_check_(); }
  EngineFacts& mutable_facts() { return facts_; }
  // Cells that are in use, counting a shared one for each of its sequences.
  [[nodiscard]] std::size_t cells_used() const { return cells_used_; }

  [[nodiscard]] const EngineFacts& facts() const override { return facts_; }
  [[nodiscard]] Result<std::vector<TokenId>> tokenize(std::string_view text,
                                                      bool add_special) const override;
  [[nodiscard]] Result<std::vector<TokenId>> tokenize_whole(std::string_view text) const override;
  [[nodiscard]] Result<std::vector<TokenId>> tokenize_parts(std::span<const PromptPart> parts,
                                                            bool add_special) const override;
  [[nodiscard]] std::vector<std::string> control_texts() const override;
  [[nodiscard]] std::optional<TokenId> control_token(std::string_view text) const override;
  void append_piece(TokenId token, std::string& out, bool show_control) const override;
  [[nodiscard]] bool ends_generation(TokenId token) const override { return token == kEnd; }
  [[nodiscard]] TokenBytes token_bytes() const override;
  // A grammar `fail-after N` stands for FakeSampler::fail_after; `refuse` is refused.
  [[nodiscard]] Result<std::unique_ptr<Sampler>> make_sampler(
      const SamplingSettings& settings) const override;

  std::uint32_t keep_prefix(SequenceId sequence, std::uint32_t tokens) override;
  DecodeOutcome decode(std::span<const BatchItem> batch, std::string& error) override;
  Result<SampledToken> sample(Sampler& sampler, std::size_t index) override;
  DraftStep draft(SequenceId sequence, std::span<const TokenId> tokens, DraftLimits limits,
                  std::vector<TokenId>& out) override;
  void forget_draft(SequenceId sequence) override;
  std::uint32_t copy_prefix(SequenceId from, SequenceId to, std::uint32_t tokens) override;
  DecodeOutcome embed(std::span<const std::vector<TokenId>> inputs,
                      std::vector<std::vector<float>>& out, std::string& error) override;
  void set_threads(std::uint32_t threads) override { compute_threads = threads; }
  void set_abort_check(std::function<bool()> check) override { abort_check_ = std::move(check); }

 private:
  struct Cell {
    TokenId token;
    std::uint64_t hash;  // of the sequence up to here
  };
  using Sequence = std::vector<Cell>;

  void violation(const std::string& what) const;
  Sequence& sequence_of(SequenceId id);
  void resize(Sequence& sequence, std::size_t tokens);
  void add(const BatchItem& item);
  [[nodiscard]] std::uint64_t hash_of(const Sequence& sequence, std::size_t tokens) const;
  [[nodiscard]] TokenId next_token(std::uint64_t hash, std::uint64_t sampler_seed) const;
  void check_text(const FakeSampler& sampler, const BatchItem& item);
  void add_logprobs(const FakeSampler& sampler, std::uint64_t hash, SampledToken& sampled) const;
  // What decode() and embed() have in common: time, failures, giving up.
  DecodeOutcome compute(std::size_t tokens, std::size_t outputs, std::string& error);
  void fail_batch();
  [[nodiscard]] static bool has_token(std::span<const std::vector<TokenId>> inputs,
                                      std::optional<TokenId> token);
  // Whether it was not given up meanwhile.
  bool spend(Duration time);
  void sleep(Duration time) const;

  FakeSettings settings_;
  EngineFacts facts_;
  std::vector<Sequence> held_;
  std::vector<std::vector<TokenId>> draft_held_;
  std::size_t cells_used_ = 0;
  std::vector<BatchItem> batch_;  // the last one
  std::uint64_t batches_ = 0;
  std::function<bool()> abort_check_;
  std::vector<std::vector<char>> memory_;
};

}  // namespace berth::worker
