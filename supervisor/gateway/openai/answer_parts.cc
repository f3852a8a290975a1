#include "supervisor/gateway/openai/answer_parts.h"

#include <array>
#include <charconv>
#include <cmath>

#include "common/json_text.h"
#include "common/version.h"

namespace berth::gateway::openai {
namespace {

constexpr double kMicrosecondsPerMillisecond = 1000;

void append_field(std::string& out, std::string_view name, double number) {
  out += ",\"";
  out += name;
  out += "\":";
  append_json_number(out, number);
}

// How fast tokens came, and how long each took; nothing where there were none.
void append_rate(std::string& out, std::string_view what, std::uint32_t tokens,
                 std::uint64_t microseconds) {
  const double took = static_cast<double>(microseconds) / kMicrosecondsPerMillisecond;
  const std::string name(what);
  append_field(out, name + "_n", tokens);
  append_field(out, name + "_ms", took);
  if (tokens == 0 || microseconds == 0) return;
  append_field(out, name + "_per_token_ms", took / tokens);
  append_field(out, name + "_per_second", tokens * kMicrosecondsPerMillisecond / took);
}

// Every piece has the usage or says that it is none.
void append_no_usage(std::string& out, const AnswerHead& head) {
  if (head.include_usage) out += ",\"usage\":null";
}

void append_bytes(std::string& out, std::string_view text) {
  out += ",\"bytes\":[";
  bool first = true;
  for (const char c : text) {
    if (!first) out += ',';
    first = false;
    append_whole(out, static_cast<std::uint8_t>(c));
  }
  out += ']';
}

void append_chat_token(std::string& out, const core::TokenLogprob& token) {
  out += "{\"id\":";
  append_whole(out, static_cast<std::uint32_t>(token.id));
  out += ",\"token\":";
  append_json_string(out, token.text);
  out += ",\"logprob\":";
  append_logprob(out, token.logprob);
  append_bytes(out, token.text);
}

// "usage":{…}
void append_usage(std::string& out, const core::Usage& usage) {
  out += "\"usage\":{\"prompt_tokens\":";
  append_whole(out, usage.prompt_tokens);
  out += ",\"completion_tokens\":";
  append_whole(out, usage.completion_tokens);
  out += ",\"total_tokens\":";
  append_whole(out, std::uint64_t{usage.prompt_tokens} + usage.completion_tokens);
  out += ",\"prompt_tokens_details\":{\"cached_tokens\":";
  append_whole(out, usage.cached_tokens);
  out += "},\"completion_tokens_details\":{\"accepted_prediction_tokens\":";
  append_whole(out, usage.accepted_tokens);
  out += ",\"rejected_prediction_tokens\":";
  append_whole(out, usage.drafted_tokens - std::min(usage.accepted_tokens, usage.drafted_tokens));
  out += "}}";
}

// "timings":{…}, as llama.cpp's server has them, and berth's own.
void append_timings(std::string& out, const core::DoneEvent& done) {
  const core::Timings& timings = done.timings;
  const std::uint32_t cached = std::min(done.usage.cached_tokens, done.usage.prompt_tokens);
  out += "\"timings\":{\"cache_n\":";
  append_whole(out, cached);
  append_rate(out, "prompt", done.usage.prompt_tokens - cached, timings.prefill_us);
  append_rate(out, "predicted", done.usage.completion_tokens, timings.decode_us);
  const auto milliseconds = [&](std::string_view name, std::uint64_t microseconds) {
    append_field(out, name, static_cast<double>(microseconds) / kMicrosecondsPerMillisecond);
  };
  milliseconds("queue_ms", timings.queue_us);
  milliseconds("load_ms", timings.load_us);
  milliseconds("first_token_ms", timings.first_token_us);
  if (done.usage.drafted_tokens > 0) {
    append_field(out, "draft_n", done.usage.drafted_tokens);
    append_field(out, "draft_n_accepted", done.usage.accepted_tokens);
  }
  out += '}';
}

}  // namespace

std::string opening(const AnswerHead& head, std::string_view prefix, std::string_view object) {
  std::string out = "{\"id\":";
  append_json_string(out, std::string(prefix) + "-" + head.request_id);
  out += ",\"object\":\"";
  out += object;
  out += "\",\"created\":" + std::to_string(head.created);
  out += ",\"model\":";
  append_json_string(out, head.model);
  out += ",\"system_fingerprint\":";
  append_json_string(out, "berth-" + std::string(kBuildId));
  return out;
}

void append_whole(std::string& out, std::uint64_t number) {
  std::array<char, 20> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  if (error == std::errc()) out.append(digits.data(), end);
}

void append_piece_end(std::string& out, const AnswerHead& head) {
  append_no_usage(out, head);
  out += "}\n\n";
}

void append_stream_end(std::string& out, const AnswerHead& head, const std::string& piece,
                       const core::DoneEvent& done) {
  append_no_usage(out, head);
  out += ',';
  append_timings(out, done);
  out += "}\n\n";
  if (head.include_usage) {
    out += piece;
    out += ",\"choices\":[],";
    append_usage(out, done.usage);
    out += "}\n\n";
  }
  out += "data: [DONE]\n\n";
}

void append_answer_end(std::string& out, const core::DoneEvent& done) {
  out += ',';
  append_usage(out, done.usage);
  out += ',';
  append_timings(out, done);
  out += "}\n";
}

void append_logprob(std::string& out, float logprob) {
  constexpr double kNever = -9999;
  append_json_number(out, std::isfinite(logprob) ? static_cast<double>(logprob) : kNever);
}

void append_chat_logprobs(std::string& out, const std::vector<core::TokenLogprobs>& logprobs) {
  out += '[';
  bool first = true;
  for (const core::TokenLogprobs& token : logprobs) {
    if (!first) out += ',';
    first = false;
    append_chat_token(out, token.chosen);
    out += ",\"top_logprobs\":[";
    for (std::size_t i = 0; i < token.top.size(); ++i) {
      if (i > 0) out += ',';
      append_chat_token(out, token.top[i]);
      out += '}';
    }
    out += "]}";
  }
  out += ']';
}

}  // namespace berth::gateway::openai
