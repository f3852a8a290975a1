#include "worker/lanes/proof.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace berth::worker {

namespace {

Status check(DecodeOutcome outcome, const std::string& problem) {
  switch (outcome) {
    case DecodeOutcome::kDone:
      break;
    case DecodeOutcome::kAborted:
      return fail(Reason::kLoadFailed, "cancelled");
    case DecodeOutcome::kFailed:
      return fail(Reason::kLoadFailed, "the model could not compute one token: " + problem);
  }
  return {};
}

Status prove_embedding(Engine& engine, TokenId token) {
  const std::vector<std::vector<TokenId>> inputs = {{token}};
  std::vector<std::vector<float>> vectors;
  std::string problem;
  auto done = check(engine.embed(inputs, vectors, problem), problem);
  if (done && vectors.size() != 1) {
    return fail(Reason::kLoadFailed, "the model gave no embedding of one token");
  }
  if (done && vectors.front().empty()) {
    return fail(Reason::kLoadFailed,
                "The model computed no usable embedding (NaN or infinite). Its file may be "
                "damaged.");
  }
  return done;
}

}  // namespace

Status prove(Engine& engine, std::function<bool()> cancelled) {
  TokenId first = 0;
  if (const auto start = engine.tokenize("", true); start && !start->empty()) {
    first = start->front();
  }
  engine.set_abort_check(std::move(cancelled));
  if (engine.facts().purpose == Purpose::kEmbed) return prove_embedding(engine, first);
  const std::array batch = {BatchItem{0, first, 0, true}};
  std::string problem;
  if (auto done = check(engine.decode(batch, problem), problem); !done) return done;
  SamplingSettings greedy;
  greedy.temperature = 0;
  const auto sampler = engine.make_sampler(greedy);
  if (!sampler) return fail(sampler.error());
  if (const auto token = engine.sample(**sampler, 0); !token) return fail(token.error());
  engine.keep_prefix(0, 0);
  return {};
}

}  // namespace berth::worker
