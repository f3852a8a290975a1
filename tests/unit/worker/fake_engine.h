#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "worker/engine/engine.h"

namespace berth::worker {

// An engine without a model. Its vocabulary is the 256 bytes, and kEnd. What it says next depends
// on every token that its sequence holds, so that a lane which loses, doubles or mixes up tokens
// gives another answer than answer_to(). It fails the test where positions have gaps.
class FakeEngine : public Engine {
 public:
  static constexpr TokenId kEnd = 256;

  struct FakeSampler final : Sampler {
    void accept_prompt(std::span<const TokenId> /*tokens*/) override {}
  };

  explicit FakeEngine(std::uint32_t sequences, std::uint32_t window = 256,
                      std::uint32_t batch = 64) {
    facts_.window = window;
    facts_.cells = window;
    facts_.sequences = sequences;
    facts_.batch = batch;
    facts_.vocabulary = kEnd + 1;
    held_.resize(sequences);
  }

  // What it says to a prompt until it ends by itself.
  static std::string answer_to(std::vector<TokenId> tokens) {
    std::string answer;
    for (auto next = next_token(tokens); next != kEnd; next = next_token(tokens)) {
      answer.push_back(static_cast<char>(next));
      tokens.push_back(next);
    }
    return answer;
  }

  // It goes on until its window is full.
  bool never_ends = false;
  // Called within decode(), on the context thread.
  std::function<void()> on_decode;
  // The next decode() says so.
  std::atomic<bool> fail_next{false};
  // keep_prefix() keeps nothing, as with recurrent models.
  std::atomic<bool> keeps_nothing{false};
  std::atomic<std::uint64_t> decodes{0};
  std::atomic<std::uint64_t> computed_tokens{0};
  [[nodiscard]] bool abort_wanted() const { return abort_check_ && abort_check_(); }

  EngineFacts& mutable_facts() { return facts_; }
  [[nodiscard]] const EngineFacts& facts() const override { return facts_; }
  [[nodiscard]] Result<std::vector<TokenId>> tokenize(std::string_view text,
                                                      bool /*add_special*/) const override {
    return std::vector<TokenId>(text.begin(), text.end());
  }
  [[nodiscard]] Result<std::vector<TokenId>> tokenize_parts(std::span<const PromptPart> parts,
                                                            bool /*add_special*/) const override {
    std::vector<TokenId> tokens;
    for (const auto& part : parts) tokens.insert(tokens.end(), part.text.begin(), part.text.end());
    return tokens;
  }
  [[nodiscard]] std::vector<std::string> control_texts() const override { return {}; }
  [[nodiscard]] std::optional<TokenId> control_token(std::string_view /*text*/) const override {
    return std::nullopt;
  }
  void append_piece(TokenId token, std::string& out, bool /*show_control*/) const override {
    out.push_back(static_cast<char>(token));
  }
  [[nodiscard]] bool ends_generation(TokenId token) const override { return token == kEnd; }
  [[nodiscard]] std::uint32_t longest_token_bytes() const override { return 1; }

  std::uint32_t keep_prefix(SequenceId sequence, std::uint32_t tokens) override {
    auto& held = held_.at(static_cast<std::size_t>(sequence));
    EXPECT_LE(tokens, held.size());
    held.resize(keeps_nothing ? 0 : tokens);
    return static_cast<std::uint32_t>(held.size());
  }

  DecodeOutcome decode(std::span<const BatchItem> batch, std::string& error) override {
    ++decodes;
    EXPECT_LE(batch.size(), facts_.batch);
    outputs_.assign(batch.size(), kNoOutput);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      auto& held = held_.at(static_cast<std::size_t>(batch[i].sequence));
      EXPECT_EQ(batch[i].position, held.size()) << "a gap in sequence " << batch[i].sequence;
      held.push_back(batch[i].token);
      EXPECT_LE(held.size(), facts_.window);
      EXPECT_LE(cells_used(), facts_.cells) << "more than the pool has";
      if (!batch[i].wants_output) continue;
      outputs_[i] = next_token(held);
      if (never_ends && outputs_[i] == kEnd) outputs_[i] = 'z';
    }
    if (on_decode) on_decode();
    if (fail_next.exchange(false)) {
      error = "the test says so";
      return DecodeOutcome::kFailed;
    }
    if (abort_wanted()) return DecodeOutcome::kAborted;
    computed_tokens += batch.size();
    return DecodeOutcome::kDone;
  }

  [[nodiscard]] Result<std::unique_ptr<Sampler>> make_sampler(
      const SamplingSettings& /*settings*/) const override {
    return std::make_unique<FakeSampler>();
  }
  Result<SampledToken> sample(Sampler& /*sampler*/, std::size_t index) override {
    SampledToken sampled;
    sampled.token = outputs_.at(index);
    EXPECT_NE(sampled.token, kNoOutput) << "no output was asked for at " << index;
    return sampled;
  }
  void draft(SequenceId /*sequence*/, std::span<const TokenId> /*tokens*/, std::size_t /*most*/,
             std::vector<TokenId>& /*out*/) override {}
  std::uint32_t copy_prefix(SequenceId from, SequenceId to, std::uint32_t tokens) override {
    const auto& source = held_.at(static_cast<std::size_t>(from));
    EXPECT_LE(tokens, source.size());
    held_.at(static_cast<std::size_t>(to))
        .assign(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(tokens));
    return tokens;
  }
  DecodeOutcome embed(std::span<const std::vector<TokenId>> inputs,
                      std::vector<std::vector<float>>& out, std::string& /*error*/) override {
    for (const auto& input : inputs) out.push_back({static_cast<float>(input.size())});
    return DecodeOutcome::kDone;
  }
  void set_threads(std::uint32_t /*threads*/) override {}
  void set_abort_check(std::function<bool()> check) override { abort_check_ = std::move(check); }

  [[nodiscard]] std::size_t cells_used() const {
    std::size_t used = 0;
    for (const auto& held : held_) used += held.size();
    return used;
  }

 private:
  static constexpr TokenId kNoOutput = -1;
  static TokenId next_token(const std::vector<TokenId>& tokens) {
    std::uint64_t hash = 1469598103934665603U;
    for (const auto token : tokens) {
      hash = (hash ^ static_cast<std::uint64_t>(token)) * 1099511628211U;
    }
    hash ^= hash >> 29U;
    if (hash % 24 == 0) return kEnd;
    return 'a' + static_cast<TokenId>((hash >> 8U) % 26);
  }

  EngineFacts facts_;
  std::vector<std::vector<TokenId>> held_;
  std::vector<TokenId> outputs_;
  std::function<bool()> abort_check_;
};

}  // namespace berth::worker
