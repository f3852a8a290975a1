#include "worker/service/request_check.h"

#include <string>
#include <utility>

#include "common/text.h"
#include "worker/engine/fewest_tokens.h"
#include "worker/service/invalid_argument.h"
#include "worker/service/sampling_check.h"

namespace berth::worker {
namespace {

constexpr int kMaxStops = 16;
constexpr std::size_t kMaxStopBytes = 1024;
constexpr std::uint32_t kMaxTopLogprobs = 20;
constexpr std::size_t kMaxScopeBytes = 1024;

Status check_stops(const v1::GenerateRequest& request, std::vector<std::string>& out) {
  if (request.stop_size() > kMaxStops) {
    return invalid_argument("stop", "There are " + std::to_string(request.stop_size()) +
                                        " stop texts; at most 16 are allowed.");
  }
  for (int i = 0; i < request.stop_size(); ++i) {
    const auto param = "stop[" + std::to_string(i) + "]";
    const auto& text = request.stop(i);
    if (text.empty()) return invalid_argument(param, param + " is empty.");
    if (text.size() > kMaxStopBytes) {
      return invalid_argument(param, param + " has " + std::to_string(text.size()) +
                                         " bytes; at most 1024 are allowed.");
    }
    if (auto checked = check_utf8(text, param); !checked) return checked;
    out.push_back(text);
  }
  return {};
}

tl::unexpected<Error> window_exceeded(std::uint64_t needed, std::uint32_t window,
                                      const std::string& prompt) {
  ErrorExtras extras;
  extras.needed = needed;
  extras.limit = window;
  return fail(Error(Reason::kWindowExceeded,
                    prompt + "; with one token of answer it needs " + std::to_string(needed) +
                        ", but the model is served with a window of " + std::to_string(window) +
                        " tokens. Shorten the prompt, or raise the model's context.",
                    std::move(extras)));
}

}  // namespace

Status check_utf8(std::string_view text, std::string_view param) {
  const auto offset = first_invalid_utf8(text);
  if (!offset) return {};
  return invalid_argument(std::string(param), std::string(param) + " is not valid UTF-8 at byte " +
                                                  std::to_string(*offset) + ".");
}

Result<CheckedRequest> check_request(const v1::GenerateRequest& request, const EngineFacts& facts) {
  if (facts.purpose != Purpose::kGenerate) {
    return invalid_argument(
        "model",
        "This model is served for embeddings and generates no text. Ask for embeddings, "
        "or use another model.");
  }
  auto sampling =
      check_sampling(request.sampling(), SamplingBounds{facts.vocabulary, facts.window});
  if (!sampling) return fail(sampling.error());
  if (request.has_top_logprobs()) {
    if (request.top_logprobs() > kMaxTopLogprobs) {
      return out_of_range("top_logprobs", "from 0 to 20", std::to_string(request.top_logprobs()));
    }
    sampling->top_logprobs = request.top_logprobs();
  }
  if (request.cache_scope().size() > kMaxScopeBytes) {
    return invalid_argument("cache_scope", "cache_scope has " +
                                               std::to_string(request.cache_scope().size()) +
                                               " bytes; at most 1024 are allowed.");
  }
  CheckedRequest result{std::make_unique<Job>(), std::move(*sampling)};
  const auto& job = result.job;
  if (auto checked = check_stops(request, job->stop); !checked) return fail(checked.error());
  if (request.has_max_tokens()) job->max_tokens = request.max_tokens();
  return result;
}

Result<std::vector<TokenId>> check_tokens(const google::protobuf::RepeatedField<std::int32_t>& ids,
                                          std::uint32_t vocabulary, std::string_view param) {
  for (int i = 0; i < ids.size(); ++i) {
    const auto id = ids.Get(i);
    if (id < 0 || static_cast<std::uint32_t>(id) >= vocabulary) {
      const auto name = std::string(param) + "[" + std::to_string(i) + "]";
      return invalid_argument(name, name + " is " + std::to_string(id) +
                                        "; this model's tokens are 0 to " +
                                        std::to_string(vocabulary - 1) + ".");
    }
  }
  return std::vector<TokenId>(ids.begin(), ids.end());
}

Status check_window(std::size_t prompt_tokens, std::uint32_t window) {
  if (prompt_tokens == 0) {
    return invalid_argument("input",
                            "The prompt is empty, and this model has no token to begin with.");
  }
  const auto needed = static_cast<std::uint64_t>(prompt_tokens) + 1;
  if (needed <= window) return {};
  return window_exceeded(needed, window,
                         "The prompt has " + std::to_string(prompt_tokens) + " tokens");
}

Status check_text_length(std::string_view text, std::uint32_t token_bytes_bound,
                         std::uint32_t window) {
  const std::uint64_t least = fewest_tokens(text, token_bytes_bound);
  if (least + 1 <= window) return {};
  return window_exceeded(least + 1, window,
                         "The prompt has " + std::to_string(text.size()) +
                             " bytes, which are at least " + std::to_string(least) + " tokens");
}

}  // namespace berth::worker
