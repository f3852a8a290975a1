#include "tests/simulation/sim_log_watcher.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "supervisor/core/log/log_verdict.h"
#include "supervisor/process/log_watch.h"
#include "tests/simulation/sim_worker.h"

namespace berth::sim {
namespace {

constexpr std::string_view kPathFront = "/sim/";
constexpr std::string_view kPathBack = ".log";

}  // namespace

process::LogPlace log_place_of(const std::string& instance) {
  return {std::string(kPathFront) + instance + std::string(kPathBack), 0};
}

class SimLogWatcher::Watch : public process::LogWatch {
 public:
  Watch(SimClock& clock, std::shared_ptr<SimWorker> worker,
        std::vector<std::string> fatal_exceptions, OnVerdict on_verdict)
      : state_(std::make_shared<State>(clock, std::move(worker), std::move(fatal_exceptions),
                                       std::move(on_verdict))) {
    state_->worker->on_print([weak = std::weak_ptr(state_)] {
      if (const auto state = weak.lock()) post_look(state);
    });
    post_look(state_);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() override {
    state_->dropped = true;
    state_->quiet.reset();
  }

  void finish(OnEnd done) override {
    state_->done = std::move(done);
    state_->quiet.reset();
    if (state_->worker->script().log_never_read) return;
    post(state_, [](State& state) {
      auto verdict = state.read();
      if (!verdict) verdict = state.parser.end();
      const OnEnd told = std::exchange(state.done, nullptr);
      told(verdict);
    });
  }

 private:
  struct State {
    State(SimClock& its_clock, std::shared_ptr<SimWorker> its_worker,
          std::vector<std::string> fatal_exceptions, OnVerdict its_on_verdict)
        : clock(its_clock),
          worker(std::move(its_worker)),
          parser(std::move(fatal_exceptions)),
          on_verdict(std::move(its_on_verdict)) {}

    std::optional<core::LogVerdict> read() {
      const std::string_view text = std::string_view(worker->printed()).substr(offset);
      offset += text.size();
      return parser.feed(text, clock.now());
    }

    SimClock& clock;
    const std::shared_ptr<SimWorker> worker;
    core::LogParser parser;
    std::size_t offset = 0;
    OnVerdict on_verdict;
    OnEnd done;
    Timer quiet;
    bool dropped = false;
  };

  template <typename What>
  static void post(const std::shared_ptr<State>& state, What what) {
    state->clock.post_from("log " + state->worker->instance(), [state, what] {
      if (!state->dropped) what(*state);
    });
  }

  static void post_look(const std::shared_ptr<State>& state) {
    post(state, [weak = std::weak_ptr(state)](State& here) {
      if (!here.done) look(here, weak);
    });
  }

  static void look(State& state, const std::weak_ptr<State>& weak) {
    auto verdict = state.read();
    if (!verdict) verdict = state.parser.quiet(state.clock.now());
    state.quiet.reset();
    if (verdict) {
      const OnVerdict told = std::exchange(state.on_verdict, nullptr);
      if (told) told(*verdict);
    } else if (const auto until = state.parser.hold_until()) {
      state.quiet = state.clock.sleep_until(*until, [weak] {
        if (const auto held = weak.lock()) post_look(held);
      });
    }
  }

  const std::shared_ptr<State> state_;
};

std::unique_ptr<process::LogWatch> SimLogWatcher::watch(process::LogPlace place,
                                                        std::vector<std::string> fatal_exceptions,
                                                        OnVerdict on_verdict) {
  std::string_view instance = place.path;
  instance.remove_prefix(kPathFront.size());
  instance.remove_suffix(kPathBack.size());
  return std::make_unique<Watch>(clock_, workers_.by_instance(std::string(instance)),
                                 std::move(fatal_exceptions), std::move(on_verdict));
}

}  // namespace berth::sim
