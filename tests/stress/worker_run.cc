#include "tests/stress/worker_run.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <utility>

#include "common/fd.h"
#include "tests/integration/worker/worker_process.h"
#include "tests/stress/chance.h"
#include "tests/stress/control_watch.h"
#include "tests/stress/memory_growth.h"
#include "tests/stress/process_memory.h"

namespace berth::stress {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr std::size_t kShownLog = 8000;

class Run {
 public:
  Run(const Configuration& configuration, const RunSettings& settings)
      : configuration_(configuration),
        settings_(settings),
        canaries_(configuration.canaries),
        worker_({configuration.model, configuration.arguments, {}, {}, settings.wrapper}),
        growth_(seconds(settings.seconds)) {}

  RunResult run() {
    if (start()) {
      traffic_ = std::make_unique<Traffic>(Traffic::Setup{worker_.socket(), target_, settings_.seed,
                                                          settings_.threads, settings_.only},
                                           canaries_);
      watch();
      finish();
    }
    return std::move(result_);
  }

 private:
  void problem(const std::string& text) {
    ++result_.problems;
    std::printf("PROBLEM %s seed %" PRIu64 ": %s\n", configuration_.name.c_str(), settings_.seed,
                text.c_str());
    std::fflush(stdout);
  }

  bool start() {
    std::optional<v1::Ready> ready;
    if (worker_.wait_listening()) {
      control_ = std::make_unique<ControlWatch>(worker_.socket());
      ready = control_->wait_ready();
    }
    if (!ready) {
      problem("the model was not loaded:\n" + worker_.log());
      return false;
    }
    pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, worker_.pid(), 0)));
    target_.window = ready->window();
    target_.vocabulary = ready->vocabulary();
    target_.embedding_size = ready->embedding_size();
    target_.generates = ready->can_generate();
    target_.drafts = ready->draft_tokens() > 0;
    target_.ambiguous_grammars = settings_.ambiguous_grammars;
    threads_ = ready->threads();
    target_.canaries = canaries_.size();
    control_->listen();
    return learn_answers();
  }

  // Models with random weights: what they say when they are alone is right.
  bool learn_answers() {
    Canceller canceller;
    Patience patience;
    Client client(worker_.socket(), target_, canaries_, canceller, patience);
    for (auto& canary : canaries_) {
      if (!canary.text.empty()) continue;
      bool learnt = false;
      if (target_.generates) {
        const auto text = client.answer(canary.request);
        learnt = text.has_value();
        canary.text = text.value_or("");
      } else {
        const auto vector = client.vector(canary.embed);
        learnt = vector.has_value();
        canary.vector = vector.value_or(std::vector<float>());
      }
      if (!learnt) {
        problem("a known question was not answered before all others");
        return false;
      }
    }
    return true;
  }

  // Whether the worker lives after a second at most.
  [[nodiscard]] bool wait_second() const {
    pollfd fd{pidfd_.get(), POLLIN, 0};
    return ::poll(&fd, 1, 1000) == 0;
  }

  void print_memory(const char* when) {
    const auto memory = memory_of(worker_.pid());
    std::printf("%s %s: %" PRIu64 " KiB anonymous, peak %" PRIu64 " KiB, %" PRIu64
                " threads, %" PRIu64 " descriptors\n",
                configuration_.name.c_str(), when, memory.anonymous_kib, memory.peak_kib,
                memory.threads, memory.descriptors);
    std::fflush(stdout);
  }

  void watch() {
    const auto begun = steady_clock::now();
    const auto end = begun + seconds(settings_.seconds);
    auto next_print = begun + seconds(30);
    Random random(settings_.seed);
    print_memory("at start");
    while (steady_clock::now() < end) {
      if (!wait_second()) {
        result_.died = true;
        return;
      }
      control_->set_threads(random.percent(70)
                                ? static_cast<std::uint32_t>(random.between(1, threads_))
                                : static_cast<std::uint32_t>(random.next()));
      auto problems = control_->take_problems();
      if (random.percent(5)) {
        for (auto& text : control_->try_second_stream()) problems.push_back(std::move(text));
      }
      for (const auto& text : problems) problem(text);
      if (const auto late = traffic_->overdue(); !late.empty()) {
        for (const auto& text : late) problem("hangs: " + text);
        result_.died = true;  // nobody knows when it would end
        worker_.signal(SIGKILL);
        return;
      }
      const auto now = steady_clock::now();
      growth_.look(now - begun, memory_of(worker_.pid()).anonymous_kib);
      if (now >= next_print) {
        next_print = now + seconds(30);
        print_memory("now");
      }
    }
  }

  void finish() {
    traffic_->end();
    result_.counts = traffic_->counts();
    result_.problems += traffic_->problems();
    if (!result_.died && !wait_second()) result_.died = true;
    if (result_.died) {
      report_death();
      return;
    }
    if (!control_->wait_quiet()) problem("calls are active although all have ended");
    print_memory("at the end");
    if (const auto grew = growth_.problem(memory_of(worker_.pid()).anonymous_kib)) problem(*grew);
    for (const auto& text : control_->take_problems()) problem(text);
    if (!control_->drain()) problem("it does not drain");
    worker_.signal(SIGTERM);
    const auto exit = worker_.wait_exit();
    if (exit.code != 0) problem("it did not end with 0 when it was told to\n" + worker_.log());
  }

  void report_death() {
    const auto exit = worker_.wait_exit();
    auto log = worker_.log();
    if (log.size() > kShownLog) log = "…" + log.substr(log.size() - kShownLog);
    problem("the worker ended with " +
            (exit.signal ? "signal " + std::to_string(*exit.signal)
                         : "status " + std::to_string(exit.code.value_or(-1))) +
            "; the calls above with status 14 ran then. Its log:\n" + log);
  }

  const Configuration& configuration_;
  const RunSettings& settings_;
  std::vector<Canary> canaries_;
  worker::WorkerProcess worker_;
  UniqueFd pidfd_;
  std::unique_ptr<ControlWatch> control_;
  Target target_;
  std::uint32_t threads_ = 1;
  std::unique_ptr<Traffic> traffic_;
  MemoryGrowth growth_;
  RunResult result_;
};

}  // namespace

RunResult run_worker(const Configuration& configuration, const RunSettings& settings) {
  return Run(configuration, settings).run();
}

void print_counts(const Counts& counts) {
  for (const auto& [kind, counted] : counts) {
    std::uint64_t sum = 0;
    std::string line;
    for (const auto& [result, count] : counted.results) {
      sum += count;
      line += "  " + result + " " + std::to_string(count);
    }
    const auto all = static_cast<std::uint64_t>(counted.time.count());
    std::printf("  %-10s %7" PRIu64 " of %" PRIu64 " ms, the slowest %" PRId64 " ms (%s):%s\n",
                kind.c_str(), sum, all / sum, static_cast<std::int64_t>(counted.slowest.count()),
                counted.slowest_id.c_str(), line.c_str());
  }
  std::fflush(stdout);
}

}  // namespace berth::stress
