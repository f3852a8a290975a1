#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
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

#include "tests/fake_engine/fake_engine.h"
#include "worker/lanes/lane_runner.h"

namespace berth::worker {

// Lanes under simulated time, in one thread: the engine's batches and idle turns are all that lets
// time pass. The same jobs give the same run.
class Simulation {
 public:
  struct Sink final : JobSink {
    void on_prefill(std::uint32_t done, std::uint32_t /*total*/) override {
      prefills.push_back(done);
    }
    void on_token(std::string_view part, std::span<const SampledToken> tokens) override {
      EXPECT_FALSE(part.empty() && tokens.empty());
      EXPECT_FALSE(end.has_value());
      if (text.empty()) first_text_at = simulation->now();
      text += part;
      for (const auto& token : tokens) ids.push_back(token.token);
    }
    void on_end(JobEnd last) override {
      EXPECT_FALSE(end.has_value()) << "ended twice";
      end = std::move(last);
      ended_at = simulation->now();
      ended_in_batch = simulation->batches();
      items_at_end = simulation->items.size();
    }
    [[nodiscard]] bool has_room() const override { return text.size() < room; }
    [[nodiscard]] bool cancelled() const override { return wants_cancel; }

    [[nodiscard]] const JobResult* result() const {
      return end ? std::get_if<JobResult>(&*end) : nullptr;
    }
    [[nodiscard]] const Error* error() const { return end ? std::get_if<Error>(&*end) : nullptr; }
    [[nodiscard]] bool was_cancelled() const {
      return end && std::holds_alternative<JobCancelled>(*end);
    }

    Simulation* simulation = nullptr;
    std::string text;
    std::vector<TokenId> ids;
    std::vector<std::uint32_t> prefills;
    std::size_t room = SIZE_MAX;
    bool wants_cancel = false;
    std::optional<JobEnd> end;
    SteadyTime first_text_at{};
    SteadyTime ended_at{};
    std::uint64_t ended_in_batch = 0;
    std::size_t items_at_end = 0;
    std::size_t number = 0;  // of its trace
  };

  explicit Simulation(FakeSettings settings) : engine(std::move(settings)) {
    engine.pause = [this](Duration time) { now_ += time; };
    engine.on_violation = [this](const std::string& what) {
      violations.push_back(what);
      ADD_FAILURE() << what;
    };
    engine.on_batch = [this](std::span<const BatchItem> batch) {
      for (const auto& item : batch) items.push_back(item);
      last_batch.assign(batch.begin(), batch.end());
      if (each_batch) each_batch(batch);
    };
    engine.on_sample = [this](const FakeEngine::FakeSampler& sampler, const BatchItem& item) {
      // Of several at one address the last one lives.
      const auto found = std::find_if(traces.rbegin(), traces.rend(), [&](const Trace& trace) {
        return trace.sampler == &sampler;
      });
      if (found != traces.rend()) found->sequence = item.sequence;
    };
    runner.open(engine);
  }
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  ~Simulation() { finish(); }

  [[nodiscard]] SteadyTime now() const { return now_; }
  void pass(Duration time) { now_ += time; }
  [[nodiscard]] std::uint64_t batches() const { return engine.decodes; }

  std::unique_ptr<Job> job(std::string_view prompt) { return job(tokens_of(prompt)); }
  std::unique_ptr<Job> job(std::vector<TokenId> prompt) {
    auto sampler = std::make_unique<FakeEngine::FakeSampler>();
    const auto number = traces.size();
    traces.push_back(Trace{sampler.get(), 0, std::nullopt});
    sampler->on_prompt = [this, number] { traces[number].begins = items.size(); };
    auto made = std::make_unique<Job>();
    made->prompt = std::move(prompt);
    made->sampler = std::move(sampler);
    made->arrived = now_;
    auto sink = std::make_shared<Sink>();
    sink->simulation = this;
    sink->number = number;
    made->sink = std::move(sink);
    return made;
  }
  static FakeEngine::FakeSampler& sampler_of(Job& job) {
    return static_cast<FakeEngine::FakeSampler&>(*job.sampler);
  }
  std::shared_ptr<Sink> submit(std::unique_ptr<Job> made) {
    auto sink = std::static_pointer_cast<Sink>(made->sink);
    if (auto submitted = runner.submit(std::move(made)); !submitted)
      sink->on_end(submitted.error());
    return sink;
  }
  std::shared_ptr<Sink> submit(std::string_view prompt) { return submit(job(prompt)); }

  // Until there is nothing to do, or so many turns are over.
  void run(std::size_t turns = 100'000) {
    while (turns-- > 0 && runner.turn()) {
    }
  }
  void run_until(const std::function<bool()>& done, std::size_t turns = 100'000) {
    while (turns-- > 0 && !done()) runner.turn();
    EXPECT_TRUE(done());
  }
  void finish() {
    runner.stop();
    runner.turn();
  }

  static std::vector<TokenId> tokens_of(std::string_view text) {
    return {text.begin(), text.end()};
  }

  // How many tokens of an ended job's prompt were never computed for it.
  [[nodiscard]] std::uint32_t really_cached(const Sink& sink) const {
    const auto& trace = traces.at(sink.number);
    // Without a sample nobody knows where it was computed.
    if (!trace.sequence) return sink.result()->cached_tokens;
    auto lowest = sink.result()->prompt_tokens;
    for (std::size_t i = trace.begins; i < sink.items_at_end; ++i) {
      if (items[i].sequence == trace.sequence) lowest = std::min(lowest, items[i].position);
    }
    return lowest;
  }

  // What one job did to the context.
  struct Trace {
    const Sampler* sampler;
    std::size_t begins;                  // of items
    std::optional<SequenceId> sequence;  // once it was sampled for
  };

  struct Observer final : LaneObserver {
    void on_activity() override { ++activities; }
    void on_drained() override { ++drained; }
    int activities = 0;
    int drained = 0;
  };

  FakeEngine engine;
  std::vector<std::string> violations;
  std::vector<BatchItem> items;  // of all batches
  std::vector<BatchItem> last_batch;
  std::function<void(std::span<const BatchItem>)> each_batch;
  std::vector<Trace> traces;  // one per job, as they were made

 private:
  SteadyTime now_{std::chrono::seconds(1000)};

 public:
  Observer observer;
  LaneRunner runner{observer, [this] { return now_; }, nullptr};
};

// A prompt whose answer has from `least` to `most` bytes.
inline std::string talkative(std::size_t least, std::size_t most = 150,
                             std::string start = "prompt") {
  for (int i = 0;; ++i) {
    auto prompt = start + " " + std::to_string(i);
    const auto size = FakeEngine::answer_to(Simulation::tokens_of(prompt)).size();
    if (size >= least && size <= most) return prompt;
  }
}

inline std::string answer_to(std::string_view prompt) {
  return FakeEngine::answer_to(Simulation::tokens_of(prompt));
}

}  // namespace berth::worker
