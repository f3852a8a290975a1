#include "worker/engine/settings_check.h"

#include <array>
#include <cmath>
#include <sstream>
#include <string>
#include <string_view>

namespace berth::worker {
namespace {

constexpr std::size_t kMaxBreakers = 64;     // each costs a walk over the vocabulary
constexpr std::size_t kMaxTriggers = 64;     // each is searched for in every token's text
constexpr std::size_t kMaxTextBytes = 1024;  // of a breaker or trigger: libllama recurs by byte

// A number's range, with its ends unless `above_low`. NaN is in none.
struct Bound {
  std::string_view name;
  float SamplingSettings::*value;
  float low;
  float high;
  bool above_low = false;
};

using S = SamplingSettings;
constexpr float kAny = 1e6F;  // as good as none
constexpr std::array kBounds = {
    Bound{"temperature", &S::temperature, 0, kAny},
    Bound{"dynamic_temperature_range", &S::dynamic_temperature_range, 0, kAny},
    Bound{"dynamic_temperature_exponent", &S::dynamic_temperature_exponent, 0, kAny},
    Bound{"top_p", &S::top_p, 0, 1},
    Bound{"min_p", &S::min_p, 0, 1},
    Bound{"typical_p", &S::typical_p, 0, 1},
    Bound{"top_n_sigma", &S::top_n_sigma, -kAny, kAny},
    Bound{"xtc_probability", &S::xtc_probability, 0, 1},
    Bound{"xtc_threshold", &S::xtc_threshold, 0, kAny},
    Bound{"repetition_penalty", &S::repetition_penalty, 0, kAny, true},
    Bound{"frequency_penalty", &S::frequency_penalty, -kAny, kAny},
    Bound{"presence_penalty", &S::presence_penalty, -kAny, kAny},
    Bound{"dry_multiplier", &S::dry_multiplier, 0, kAny},
    Bound{"dry_base", &S::dry_base, 1, kAny},
    Bound{"mirostat_tau", &S::mirostat_tau, 0, 100},
    Bound{"mirostat_eta", &S::mirostat_eta, 0, 1},
};

std::string text_of(float value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

Status refuse(std::string message) {
  return fail(Reason::kInvalidArgument, std::move(message));
}

Status check_biases(const SamplingSettings& settings, std::uint32_t vocabulary) {
  for (const auto& [token, bias] : settings.logit_bias) {
    if (token < 0 || static_cast<std::uint32_t>(token) >= vocabulary) {
      return refuse("logit_bias names token " + std::to_string(token) +
                    "; the model has tokens 0 to " + std::to_string(vocabulary - 1) + ".");
    }
    // -infinity bans a token; +infinity leaves no distribution to draw from.
    if (!(bias <= kAny)) {
      return refuse("logit_bias of token " + std::to_string(token) + " is " + text_of(bias) +
                    "; it must be a number of at most 1000000.");
    }
  }
  return {};
}

Status check_texts(std::string_view name, const std::vector<std::string>& texts, std::size_t most) {
  if (texts.size() > most) {
    return refuse("There are " + std::to_string(texts.size()) + " " + std::string(name) +
                  "; at most " + std::to_string(most) + " are allowed.");
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto which = std::string(name) + "[" + std::to_string(i) + "]";
    if (texts[i].empty()) return refuse(which + " is empty; leave it out.");
    if (texts[i].size() > kMaxTextBytes) {
      return refuse(which + " has " + std::to_string(texts[i].size()) +
                    " bytes; at most 1024 are allowed.");
    }
    if (const auto at = texts[i].find('\0'); at != std::string::npos) {
      return refuse(which + " has a NUL at byte " + std::to_string(at) +
                    "; a token's text has none.");
    }
  }
  return {};
}

}  // namespace

Status check_settings(const SamplingSettings& settings, std::uint32_t vocabulary) {
  for (const auto& bound : kBounds) {
    const float value = settings.*bound.value;
    const bool low_enough = value <= bound.high;
    const bool high_enough = bound.above_low ? value > bound.low : value >= bound.low;
    if (low_enough && high_enough) continue;
    return refuse(std::string(bound.name) + " is " + text_of(value) + "; it must be " +
                  (bound.above_low ? "above " : "from ") + text_of(bound.low) +
                  (bound.above_low ? " and at most " : " to ") + text_of(bound.high) + ".");
  }
  if (settings.mirostat > 2) {
    return refuse("mirostat is " + std::to_string(settings.mirostat) + "; it must be 0, 1 or 2.");
  }
  if (settings.grammar.find('\0') != std::string::npos) {
    return refuse("The grammar has a NUL in it.");
  }
  if (settings.grammar.empty() && !settings.grammar_triggers.empty()) {
    return refuse("There are grammar_triggers, but no grammar.");
  }
  if (auto checked = check_biases(settings, vocabulary); !checked) return checked;
  if (auto checked = check_texts("dry_breakers", settings.dry_breakers, kMaxBreakers); !checked) {
    return checked;
  }
  return check_texts("grammar_triggers", settings.grammar_triggers, kMaxTriggers);
}

}  // namespace berth::worker
