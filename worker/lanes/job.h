#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "worker/engine/engine.h"

namespace berth::worker {

struct JobTimings {
  Duration queue{};        // from arrival until the work began
  Duration prefill{};      // reading the prompt
  Duration decode{};       // generating
  Duration first_token{};  // from arrival to the first token; zero: there was none
};

// A job that came to its natural end.
struct JobResult {
  enum class Finish : std::uint8_t { kStop, kLength };
  Finish finish = Finish::kStop;
  std::string stop_text;  // the stop text that was met
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;  // without the token that ended the answer
  std::uint32_t cached_tokens = 0;      // of the prompt, that were in the context: never computed
  std::uint32_t drafted_tokens = 0;     // that a draft model proposed
  std::uint32_t accepted_tokens = 0;    // of them, that are part of the answer
  JobTimings timings;
};

struct JobCancelled {};

using JobEnd = std::variant<JobResult, Error, JobCancelled>;

// Receives a job's answer, on the context thread. The functions must not block.
class JobSink {
 public:
  JobSink() = default;
  JobSink(const JobSink&) = delete;
  JobSink& operator=(const JobSink&) = delete;
  virtual ~JobSink() = default;

  // Tokens of the prompt that were read; only for prompts of several chunks.
  virtual void on_prefill(std::uint32_t done, std::uint32_t total) = 0;
  // Whole characters and the tokens that they came from. One of both may be empty: tokens need not
  // have a text, and the text of tokens that were told of may come later.
  virtual void on_token(std::string_view text, std::span<const SampledToken> tokens) = 0;
  // Last call, exactly once; may come from another thread where the job never began.
  virtual void on_end(JobEnd end) = 0;

  // Whether it can take more now. False pauses the job until LaneRunner::wake(); of the batch that
  // filled it up to EngineFacts::draft_tokens more tokens may follow. Must be cheap.
  [[nodiscard]] virtual bool has_room() const = 0;
  // Whether nobody wants the answer any more. Asked within a batch. Must be cheap.
  [[nodiscard]] virtual bool cancelled() const = 0;
};

// A generation, ready to be computed.
struct Job {
  std::vector<TokenId> prompt;       // 1 to window - 1 tokens, all of the vocabulary
  std::unique_ptr<Sampler> sampler;  // made with the job's settings; never null
  static constexpr auto kNoLimit = std::numeric_limits<std::uint32_t>::max();
  // Whether it says how long the answer may be; else only the window ends it.
  [[nodiscard]] bool limited() const { return max_tokens != kNoLimit; }

  std::uint32_t max_tokens = kNoLimit;
  std::vector<std::string> stop;  // none empty
  // Control tokens whose text belongs to the answer: whoever reads it needs them.
  std::vector<TokenId> shown_controls;
  // Whose job it is (S8): what one scope left in the context is never used for another.
  std::string cache_scope;
  SteadyTime arrived{};
  std::optional<SteadyTime> deadline;
  std::shared_ptr<JobSink> sink;
};

// --- embeddings

struct EmbedResult {
  std::vector<std::vector<float>> vectors;  // one per input, in their order
  std::uint64_t prompt_tokens = 0;          // of all inputs
  Duration queue{};                         // from arrival until the first input was computed
};

using EmbedEnd = std::variant<EmbedResult, Error, JobCancelled>;

// Receives the vectors of an EmbedJob. The functions must not block.
class EmbedSink {
 public:
  EmbedSink() = default;
  EmbedSink(const EmbedSink&) = delete;
  EmbedSink& operator=(const EmbedSink&) = delete;
  virtual ~EmbedSink() = default;

  // The only call, exactly once, on the context thread.
  virtual void on_end(EmbedEnd end) = 0;
  // Whether nobody wants the vectors any more. Asked within a batch. Must be cheap.
  [[nodiscard]] virtual bool cancelled() const = 0;
};

struct EmbedJob {
  // At least one, each of 1 to EngineFacts::batch tokens, all of the vocabulary.
  std::vector<std::vector<TokenId>> inputs;
  SteadyTime arrived{};
  std::optional<SteadyTime> deadline;
  std::shared_ptr<EmbedSink> sink;
};

// What ends a request whatever it is doing: that nobody wants it any more, or its deadline (none
// where it has none). `End` is JobEnd or EmbedEnd.
template <typename End>
[[nodiscard]] std::optional<End> early_end(bool cancelled,
                                           const std::optional<SteadyTime>& deadline,
                                           SteadyTime now) {
  if (cancelled) return JobCancelled{};
  if (!deadline || now < *deadline) return std::nullopt;
  return Error(Reason::kDeadline, "The request's deadline passed before its answer was complete.");
}
// The same of a job that has a sink.
std::optional<JobEnd> reason_to_end(const JobSink& sink, const std::optional<SteadyTime>& deadline,
                                    SteadyTime now);
std::optional<EmbedEnd> reason_to_end(const EmbedJob& job, SteadyTime now);
// The same, only whether there is such a reason.
template <typename AnyJob>
[[nodiscard]] bool wants_to_end(const AnyJob& job, SteadyTime now) {
  return job.sink->cancelled() || (job.deadline && now >= *job.deadline);
}
// What everything ends with that is not done when the worker stops.
Error shutting_down();

}  // namespace berth::worker
