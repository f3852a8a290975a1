#include "tests/simulation/sim_workers.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "common/uuid.h"
#include "supervisor/core/stall.h"
#include "supervisor/process/launcher.h"
#include "supervisor/residency/residency.h"
#include "supervisor/residency/tree_sampler.h"
#include "supervisor/rpc/worker_client.h"
#include "tests/simulation/sim_log_watcher.h"
#include "tests/simulation/sim_worker.h"
#include "tests/simulation/worker_script.h"

namespace berth::sim {
namespace {

std::string socket_of(const std::string& instance) {
  return "/sim/" + instance + ".sock";
}

}  // namespace

class SimWorkers::Child : public process::ChildProcess {
 public:
  explicit Child(std::shared_ptr<SimWorker> worker) : worker_(std::move(worker)) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() override { worker_->abandon(); }

  [[nodiscard]] pid_t pid() const override { return worker_->pid(); }
  [[nodiscard]] std::uint64_t start_ticks() const override {
    return static_cast<std::uint64_t>(worker_->pid()) * 100;
  }
  void signal_group(int signal) override { worker_->signal(signal); }
  void close_stdin() override {}

 private:
  const std::shared_ptr<SimWorker> worker_;
};

class SimWorkers::Client : public rpc::WorkerClient {
 public:
  explicit Client(std::shared_ptr<SimWorker> worker) : worker_(std::move(worker)) {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() override { worker_->disconnect(); }

  std::unique_ptr<rpc::GenerateCall> generate(const core::GenerateRequest& request,
                                              SteadyTime deadline,
                                              std::shared_ptr<rpc::GenerateSink> sink) override {
    return worker_->generate(request, deadline, std::move(sink));
  }
  std::unique_ptr<rpc::WorkerCall> embed(const core::EmbedRequest& request, SteadyTime deadline,
                                         rpc::OnAnswer<core::Embeddings> done) override {
    return worker_->embed(request, deadline, std::move(done));
  }
  std::unique_ptr<rpc::WorkerCall> tokenize(const core::TokenizeRequest& request,
                                            SteadyTime deadline,
                                            rpc::OnAnswer<core::Tokens> done) override {
    return worker_->tokenize(request, deadline, std::move(done));
  }
  std::unique_ptr<rpc::WorkerCall> count_tokens(const core::TokenizeRequest& request,
                                                SteadyTime deadline,
                                                rpc::OnAnswer<core::TokenCount> done) override {
    return worker_->count_tokens(request, deadline, std::move(done));
  }
  std::unique_ptr<rpc::WorkerCall> detokenize(const core::DetokenizeRequest& request,
                                              SteadyTime deadline,
                                              rpc::OnAnswer<core::DetokenizedText> done) override {
    return worker_->detokenize(request, deadline, std::move(done));
  }
  std::unique_ptr<rpc::GenerateCall> forward(rpc::ForwardRequest request, SteadyTime deadline,
                                             std::shared_ptr<rpc::ForwardSink> sink) override {
    return worker_->forward(std::move(request), deadline, std::move(sink));
  }
  void cancel_load() override {}
  void set_threads(std::uint32_t threads) override { worker_->set_threads(threads); }

 private:
  const std::shared_ptr<SimWorker> worker_;
};

class SimWorkers::Sampler : public residency::TreeSampler {
 public:
  using Done = std::function<void(std::optional<core::TreeSample>)>;

  Sampler(SimClock& clock, std::shared_ptr<SimWorker> worker)
      : clock_(clock), worker_(std::move(worker)) {}
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;
  ~Sampler() override { *done_ = nullptr; }

  void sample(Done done) override {
    *done_ = std::move(done);
    clock_.post_from("pool", [asked = done_, answer = seen()] {
      if (const Done told = std::exchange(*asked, nullptr)) told(answer);
    });
  }

 private:
  [[nodiscard]] std::optional<core::TreeSample> seen() const {
    if (!worker_->alive()) return std::nullopt;
    core::TreeSample sample;
    sample.cpu_time = Duration::zero();
    sample.log_bytes = worker_->printed().size();
    if (worker_->script().computes) sample.cpu_time = clock_.now().time_since_epoch();
    return sample;
  }

  SimClock& clock_;
  const std::shared_ptr<SimWorker> worker_;
  const std::shared_ptr<Done> done_ = std::make_shared<Done>();
};

std::unique_ptr<residency::TreeSampler> SimWorkers::watch_tree(pid_t pid) {
  for (const auto& worker : workers_) {
    if (worker->pid() == pid) return std::make_unique<Sampler>(clock_, worker);
  }
  return nullptr;
}

void SimWorkers::prepare_launch(const std::shared_ptr<const catalog::Model>& model,
                                const Uuid& instance,
                                std::function<void(Result<residency::PreparedLaunch>)> done) {
  const std::string id = instance.to_string();
  const WorkerScript script = script_ ? script_(model->name) : WorkerScript{};
  scripts_[id] = script;
  const auto answer = [this, id, name = model->name, fate = script.fate, done = std::move(done)] {
    clock_.post_from("pool", [id, name, fate, done] {
      if (fate == Fate::kPrepareError) {
        done(fail(Reason::kLoadFailed, "the model file /models/" + name + ".gguf is not there"));
        return;
      }
      residency::PreparedLaunch prepared;
      prepared.spec.program = "/sim/berth-worker";
      prepared.spec.argv = {"berth-worker", name, id, socket_of(id)};
      prepared.shown_argv = prepared.spec.argv;
      prepared.first_load_arguments = {"--first-load"};
      prepared.socket = socket_of(id);
      prepared.log = log_place_of(id);
      done(std::move(prepared));
    });
  };
  // The pool's threads keep their own time; the timer lives as long as its callback.
  const auto timer = std::make_shared<Timer>();
  *timer = clock_.sleep_for(script.prepare, [timer, answer] {
    answer();
    timer->reset();
  });
}

void SimWorkers::oom_killed(pid_t pid, std::function<void(bool)> done) {
  const auto worker = std::ranges::find(workers_, pid, &SimWorker::pid);
  const bool tells = worker != workers_.end() && (*worker)->script().kernel_tells_of_oom;
  clock_.post_from("pool", [done = std::move(done), tells] { done(tells); });
}

void SimWorkers::log_tail(const std::string& /*model*/, const Uuid& instance,
                          std::function<void(std::vector<std::string>)> done) {
  const WorkerScript& script = scripts_[instance.to_string()];
  if (script.log_never_read) return;
  clock_.post_from("pool", [done = std::move(done), lines = script.log_tail] { done(lines); });
}

Result<std::unique_ptr<process::ChildProcess>> SimWorkers::launch(
    process::LaunchSpec spec, process::ChildObserver& observer) {
  const std::string& model = spec.argv.at(1);
  const std::string& instance = spec.argv.at(2);
  const WorkerScript& script = scripts_[instance];
  if (script.fate == Fate::kLaunchError && script.launch_lacks_processes) {
    ErrorExtras extras;
    extras.failure.emplace().failure_class = "resource";
    return fail(Error(Reason::kLoadFailed, "clone: too few processes", std::move(extras)));
  }
  if (script.fate == Fate::kLaunchError) {
    return fail(Reason::kLoadFailed, "execve /sim/berth-worker: No such file or directory");
  }
  const auto worker = std::make_shared<SimWorker>(clock_, script, model, instance,
                                                  socket_of(instance), next_pid_++);
  workers_.push_back(worker);
  worker->begin(observer);
  return std::make_unique<Child>(worker);
}

std::unique_ptr<rpc::WorkerClient> SimWorkers::connect(const std::string& socket_path,
                                                       const std::string& /*instance_id*/,
                                                       rpc::WorkerObserver& observer) {
  for (const auto& worker : workers_) {
    if (worker->socket() != socket_path) continue;
    worker->connect(observer);
    return std::make_unique<Client>(worker);
  }
  return nullptr;
}

std::vector<std::shared_ptr<SimWorker>> SimWorkers::present() const {
  std::vector<std::shared_ptr<SimWorker>> there;
  for (const auto& worker : workers_) {
    if (!worker->reaped()) there.push_back(worker);
  }
  return there;
}

std::shared_ptr<SimWorker> SimWorkers::newest(const std::string& model) const {
  for (auto at = workers_.rbegin(); at != workers_.rend(); ++at) {
    if ((*at)->model() == model) return *at;
  }
  return nullptr;
}

std::shared_ptr<SimWorker> SimWorkers::by_instance(const std::string& instance) const {
  for (const auto& worker : workers_) {
    if (worker->instance() == instance) return worker;
  }
  return nullptr;
}

}  // namespace berth::sim
