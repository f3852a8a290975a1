#include "worker/lanes/proof.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace berth::worker {

namespace {

std::string words(std::size_t tokens) {
  return tokens == 1 ? "one token" : std::to_string(tokens) + " tokens";
}

Status check(DecodeOutcome outcome, std::size_t tokens, const std::string& problem) {
  switch (outcome) {
    case DecodeOutcome::kDone:
      break;
    case DecodeOutcome::kAborted:
      return fail(Reason::kLoadFailed, "cancelled");
    case DecodeOutcome::kFailed:
      return fail(Reason::kLoadFailed,
                  "the model could not compute " + words(tokens) + ": " + problem);
  }
  return {};
}

Status prove_embedding(Engine& engine, TokenId token, std::size_t count) {
  const std::vector<std::vector<TokenId>> inputs = {std::vector<TokenId>(count, token)};
  std::vector<std::vector<float>> vectors;
  std::string problem;
  auto done = check(engine.embed(inputs, vectors, problem), count, problem);
  if (done && vectors.size() != 1) {
    return fail(Reason::kLoadFailed, "the model gave no embedding of " + words(count));
  }
  if (done && vectors.front().empty()) {
    return fail(Reason::kLoadFailed,
                "The model computed no usable embedding (NaN or infinite). Its file may be "
                "damaged.");
  }
  return done;
}

}  // namespace

Status prove(Engine& engine, Proof proof, std::function<bool()> cancelled) {
  const EngineFacts& facts = engine.facts();
  const std::uint32_t count =
      proof == Proof::kOneToken ? 1 : std::max(1U, std::min(facts.micro_batch, facts.window));
  TokenId first = 0;
  if (const auto start = engine.tokenize("", true); start && !start->empty()) {
    first = start->front();
  }
  engine.set_abort_check(std::move(cancelled));
  if (facts.purpose == Purpose::kEmbed) return prove_embedding(engine, first, count);
  std::vector<BatchItem> batch;
  for (std::uint32_t i = 0; i < count; ++i) batch.push_back({0, first, i, i + 1 == count});
  std::string problem;
  if (auto done = check(engine.decode(batch, problem), count, problem); !done) return done;
  SamplingSettings greedy;
  greedy.temperature = 0;
  const auto sampler = engine.make_sampler(greedy);
  if (!sampler) return fail(sampler.error());
  if (const auto token = engine.sample(**sampler, count - 1); !token) return fail(token.error());
  engine.keep_prefix(0, 0);
  return {};
}

}  // namespace berth::worker
