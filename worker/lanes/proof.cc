#include "worker/lanes/proof.h"

#include <array>
#include <string>
#include <utility>

namespace berth::worker {

Status prove(Engine& engine, std::function<bool()> cancelled) {
  TokenId first = 0;
  if (const auto start = engine.tokenize("", true); start && !start->empty()) {
    first = start->front();
  }
  engine.set_abort_check(std::move(cancelled));
  const std::array batch = {BatchItem{0, first, 0, true}};
  std::string problem;
  switch (engine.decode(batch, problem)) {
    case DecodeOutcome::kDone:
      break;
    case DecodeOutcome::kAborted:
      return fail(Reason::kLoadFailed, "cancelled");
    case DecodeOutcome::kFailed:
      return fail(Reason::kLoadFailed, "the model could not compute one token: " + problem);
  }
  SamplingSettings greedy;
  greedy.temperature = 0;
  const auto sampler = engine.make_sampler(greedy);
  if (!sampler) return fail(sampler.error());
  if (const auto token = engine.sample(**sampler, 0); !token) return fail(token.error());
  engine.keep_prefix(0, 0);
  return {};
}

}  // namespace berth::worker
