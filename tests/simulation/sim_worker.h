#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "supervisor/core/exit_status.h"
#include "supervisor/core/generation.h"
#include "supervisor/process/launcher.h"
#include "supervisor/rpc/worker_client.h"
#include "tests/simulation/sim_clock.h"
#include "tests/simulation/worker_script.h"

namespace berth::sim {

// One simulated worker process, seen from both sides: the process that the launcher started and
// the server behind its socket. What it does comes from its script; what it tells comes as posts
// of its own threads. Simulation thread.
class SimWorker : public std::enable_shared_from_this<SimWorker> {
 public:
  SimWorker(SimClock& clock, WorkerScript script, std::string model, std::string instance,
            std::string socket, pid_t pid);
  SimWorker(const SimWorker&) = delete;
  SimWorker& operator=(const SimWorker&) = delete;
  ~SimWorker();

  void begin(process::ChildObserver& observer);
  void signal(int signal);
  // Ends by itself, now.
  void die(const core::ExitStatus& status);
  // Its control stream and its generations break, and it lives on.
  void disconnect_stream() { end_stream(); }
  // The supervisor let go of it (its end): nobody is told any more.
  void abandon();

  void connect(rpc::WorkerObserver& observer);
  void disconnect();
  std::unique_ptr<rpc::GenerateCall> generate(const core::GenerateRequest& request,
                                              SteadyTime deadline,
                                              std::shared_ptr<rpc::GenerateSink> sink);

  // Answers as a generation of this worker would end, with an answer of its own where that is well:
  // of each input its bytes or tokens.
  std::unique_ptr<rpc::WorkerCall> embed(const core::EmbedRequest& request, SteadyTime deadline,
                                         rpc::OnAnswer<core::Embeddings> done);
  std::unique_ptr<rpc::WorkerCall> tokenize(const core::TokenizeRequest& request,
                                            SteadyTime deadline, rpc::OnAnswer<core::Tokens> done);
  std::unique_ptr<rpc::WorkerCall> count_tokens(const core::TokenizeRequest& request,
                                                SteadyTime deadline,
                                                rpc::OnAnswer<core::TokenCount> done);
  std::unique_ptr<rpc::WorkerCall> detokenize(const core::DetokenizeRequest& request,
                                              SteadyTime deadline,
                                              rpc::OnAnswer<core::DetokenizedText> done);

  // Answers with the script's head, and a generation's tokens as the pieces of its body.
  std::unique_ptr<rpc::GenerateCall> forward(rpc::ForwardRequest request, SteadyTime deadline,
                                             std::shared_ptr<rpc::ForwardSink> sink);
  // The newest request that was passed on to it.
  [[nodiscard]] const rpc::ForwardRequest& forwarded() const { return forwarded_; }

  [[nodiscard]] const std::string& model() const { return model_; }
  [[nodiscard]] const std::string& instance() const { return instance_; }
  [[nodiscard]] const std::string& socket() const { return socket_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const WorkerScript& script() const { return script_; }
  [[nodiscard]] bool alive() const { return alive_; }
  [[nodiscard]] std::optional<SteadyTime> began() const { return began_; }
  [[nodiscard]] std::optional<SteadyTime> ended() const { return ended_; }
  // on_exit() was called.
  [[nodiscard]] bool reaped() const { return reaped_; }
  [[nodiscard]] bool ready() const { return ready_; }
  // Its end was none that the supervisor's signals brought about.
  [[nodiscard]] bool died_by_itself() const { return !alive_ && ends_by_itself_; }
  // When it got its first SIGTERM and SIGKILL.
  [[nodiscard]] std::optional<SteadyTime> terminated() const { return terminated_; }
  [[nodiscard]] std::optional<SteadyTime> killed() const { return killed_; }
  void set_threads(std::uint32_t threads) { threads_ = threads; }
  // That it computes with.
  [[nodiscard]] std::uint32_t threads() const { return threads_; }
  [[nodiscard]] std::size_t generations() const { return calls_.size(); }
  // All that it has written to its log.
  [[nodiscard]] const std::string& printed() const { return printed_; }
  // Called after each piece of it.
  void on_print(std::function<void()> hook) { on_print_ = std::move(hook); }

 private:
  class Call;
  class CallHandle;

  void after(Duration delay, void (SimWorker::*what)());
  void listen();
  void print(const std::string& text);
  void load_step();
  void be_probed();
  void finish_load();
  void fate_strikes();
  void say_load_failed();
  void exit_now();
  void beat();
  void notice_exit();
  void end_stream();
  template <typename Answer>
  std::unique_ptr<rpc::WorkerCall> answer(SteadyTime deadline, rpc::OnAnswer<Answer> done,
                                          Answer answer);
  template <typename Tell>
  void tell(Tell tell);
  void forget(Call* call);

  SimClock& clock_;
  const WorkerScript script_;
  const std::string model_;
  const std::string instance_;
  std::uint32_t threads_ = 0;
  rpc::ForwardRequest forwarded_;
  const std::string socket_;
  const pid_t pid_;

  process::ChildObserver* child_observer_ = nullptr;
  rpc::WorkerObserver* stream_observer_ = nullptr;
  bool alive_ = true;
  bool reaped_ = false;
  bool ready_ = false;
  bool ends_by_itself_ = false;
  std::optional<SteadyTime> began_;
  std::optional<SteadyTime> ended_;
  std::optional<SteadyTime> terminated_;
  std::optional<SteadyTime> killed_;
  bool stream_ended_ = false;
  core::ExitStatus status_ = core::UnknownExit{};
  core::ExitStatus ends_with_ = core::UnknownExit{};
  std::uint32_t steps_done_ = 0;
  std::string printed_;
  std::function<void()> on_print_;
  std::vector<Timer> timers_;
  std::vector<std::shared_ptr<Call>> calls_;
};

}  // namespace berth::sim
