#include "worker/service/request_check.h"

#include <sys/random.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>

#include "common/text.h"

namespace berth::worker {
namespace {

constexpr int kMaxStops = 16;
constexpr std::size_t kMaxStopBytes = 1024;
constexpr float kMaxTemperature = 100;

tl::unexpected<Error> invalid(std::string param, std::string message) {
  ErrorExtras extras;
  extras.param = std::move(param);
  return fail(Error(Reason::kInvalidArgument, std::move(message), std::move(extras)));
}

std::string to_text(float number) {
  if (std::isnan(number)) return "not a number";
  if (std::isinf(number)) return number > 0 ? "infinity" : "-infinity";
  return std::to_string(number);
}

std::uint32_t random_seed() {
  std::uint32_t seed = 0;
  if (::getrandom(&seed, sizeof seed, 0) != sizeof seed) seed = std::random_device{}();
  return seed;
}

Status check_sampling(const v1::Sampling& sampling, SamplingSettings& out) {
  if (sampling.has_temperature()) {
    out.temperature = sampling.temperature();
    if (!(out.temperature >= 0 && out.temperature <= kMaxTemperature)) {
      return invalid("sampling.temperature", "sampling.temperature must be from 0 to 100, not " +
                                                 to_text(out.temperature) + ".");
    }
  }
  if (sampling.has_top_k()) out.top_k = sampling.top_k();
  if (sampling.has_top_p()) {
    out.top_p = sampling.top_p();
    if (!(out.top_p > 0 && out.top_p <= 1)) {
      return invalid("sampling.top_p", "sampling.top_p must be above 0 and at most 1, not " +
                                           to_text(out.top_p) + ".");
    }
  }
  out.seed = sampling.has_seed() ? sampling.seed() : random_seed();
  return {};
}

Status check_stops(const v1::GenerateRequest& request, std::vector<std::string>& out) {
  if (request.stop_size() > kMaxStops) {
    return invalid("stop", "There are " + std::to_string(request.stop_size()) +
                               " stop texts; at most 16 are allowed.");
  }
  for (int i = 0; i < request.stop_size(); ++i) {
    const auto param = "stop[" + std::to_string(i) + "]";
    const auto& text = request.stop(i);
    if (text.empty()) return invalid(param, param + " is empty.");
    if (text.size() > kMaxStopBytes) {
      return invalid(param, param + " has " + std::to_string(text.size()) +
                                " bytes; at most 1024 are allowed.");
    }
    if (auto checked = check_utf8(text, param); !checked) return checked;
    out.push_back(text);
  }
  return {};
}

}  // namespace

Status check_utf8(std::string_view text, std::string_view param) {
  const auto offset = first_invalid_utf8(text);
  if (!offset) return {};
  return invalid(std::string(param), std::string(param) + " is not valid UTF-8 at byte " +
                                         std::to_string(*offset) + ".");
}

Result<CheckedRequest> check_request(const v1::GenerateRequest& request) {
  CheckedRequest result{std::make_unique<Job>(), {}};
  const auto& job = result.job;
  if (auto checked = check_sampling(request.sampling(), result.sampling); !checked) {
    return fail(checked.error());
  }
  if (auto checked = check_stops(request, job->stop); !checked) return fail(checked.error());
  if (request.has_max_tokens()) job->max_tokens = request.max_tokens();
  return result;
}

Result<std::vector<TokenId>> check_tokens(const v1::TokenInput& input, std::uint32_t vocabulary) {
  for (int i = 0; i < input.ids_size(); ++i) {
    const auto id = input.ids(i);
    if (id < 0 || static_cast<std::uint32_t>(id) >= vocabulary) {
      const auto param = "tokens.ids[" + std::to_string(i) + "]";
      return invalid(param, param + " is " + std::to_string(id) +
                                "; this model's tokens are 0 to " + std::to_string(vocabulary - 1) +
                                ".");
    }
  }
  return std::vector<TokenId>(input.ids().begin(), input.ids().end());
}

Status check_window(std::size_t prompt_tokens, std::uint32_t window) {
  if (prompt_tokens == 0) {
    return invalid("input", "The prompt is empty, and this model has no token to begin with.");
  }
  const auto needed = static_cast<std::uint64_t>(prompt_tokens) + 1;
  if (needed <= window) return {};
  ErrorExtras extras;
  extras.needed = needed;
  extras.limit = window;
  return fail(Error(Reason::kWindowExceeded,
                    "The prompt has " + std::to_string(prompt_tokens) +
                        " tokens; with one token of answer it needs " + std::to_string(needed) +
                        ", but the model is served with a window of " + std::to_string(window) +
                        " tokens. Shorten the prompt, or raise the model's context.",
                    std::move(extras)));
}

}  // namespace berth::worker
