#include "tests/simulation/sim_worker.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/core/exit_status.h"
#include "supervisor/core/generation.h"
#include "supervisor/process/launcher.h"
#include "supervisor/rpc/worker_client.h"

namespace berth::sim {

std::string_view fate_name(Fate fate) {
  constexpr std::array<std::string_view, 12> kNames = {
      "serves",        "prepare_error",    "launch_error",
      "exits_at_once", "exits_loading",    "never_listens",
      "never_ready",   "says_load_failed", "says_load_failed_and_exits",
      "drops_stream",  "dies_ready",       "dies_busy"};
  static_assert(kNames.size() == static_cast<std::size_t>(Fate::kDiesBusy) + 1);
  return kNames.at(static_cast<std::size_t>(fate));
}

// One generation: a token at a time, until it is paused, cancelled, over its deadline, or its
// worker is gone.
class SimWorker::Call : public std::enable_shared_from_this<Call> {
 public:
  Call(SimWorker& worker, SteadyTime deadline, std::shared_ptr<rpc::GenerateSink> sink)
      : worker_(&worker),
        clock_(worker.clock_),
        source_("generate " + worker.instance_ + " " + std::to_string(worker.pid_)),
        tokens_(worker.script_.tokens),
        every_(worker.script_.token_every),
        sink_(std::move(sink)) {
    deadline_timer_ = clock_.sleep_until(
        deadline, [this] { end(fail(Reason::kDeadline, "The deadline of the request passed.")); });
    if (!worker.script_.wedges) next();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() = default;

  void cancel() { end(fail(Reason::kInternal, "The call was cancelled.")); }
  void resume() {
    if (!std::exchange(paused_, false)) {
      resumed_ = true;
      return;
    }
    next();
  }
  void end(Status status) {
    if (!sink_) return;
    timer_.reset();
    deadline_timer_.reset();
    clock_.post_from(
        source_, [sink = std::move(sink_), status = std::move(status)] { sink->on_end(status); });
    sink_ = nullptr;
    if (worker_ != nullptr) std::exchange(worker_, nullptr)->forget(this);
  }

 private:
  void next() {
    if (!sink_) return;
    timer_ = clock_.sleep_for(every_, [this] { emit(); });
  }
  void emit() {
    clock_.post_from(source_, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->deliver();
    });
  }
  void deliver() {
    if (!sink_) return;
    const std::shared_ptr<rpc::GenerateSink> sink = sink_;
    if (sent_ < tokens_.size()) {
      core::TokenEvent token;
      token.text = tokens_[sent_++];
      token.ids = {static_cast<std::int32_t>(sent_)};
      const bool room = sink->on_event(std::move(token));
      if (!room && !std::exchange(resumed_, false)) {
        paused_ = true;
        return;
      }
      resumed_ = false;
      next();
      return;
    }
    core::DoneEvent done;
    done.finish_reason = "stop";
    done.usage.prompt_tokens = 1;
    done.usage.completion_tokens = static_cast<std::uint32_t>(tokens_.size());
    std::ignore = sink->on_event(std::move(done));
    end({});
  }

  SimWorker* worker_;
  SimClock& clock_;
  const std::string source_;
  const std::vector<std::string> tokens_;
  const Duration every_;
  std::shared_ptr<rpc::GenerateSink> sink_;
  std::size_t sent_ = 0;
  bool paused_ = false;
  bool resumed_ = false;
  Timer timer_;
  Timer deadline_timer_;
};

class SimWorker::CallHandle : public rpc::GenerateCall {
 public:
  explicit CallHandle(std::shared_ptr<Call> call) : call_(std::move(call)) {}
  CallHandle(const CallHandle&) = delete;
  CallHandle& operator=(const CallHandle&) = delete;
  ~CallHandle() override { call_->cancel(); }
  void cancel() override { call_->cancel(); }
  void resume() override { call_->resume(); }

 private:
  const std::shared_ptr<Call> call_;
};

SimWorker::SimWorker(SimClock& clock, WorkerScript script, std::string model, std::string instance,
                     std::string socket, pid_t pid)
    : clock_(clock),
      script_(std::move(script)),
      model_(std::move(model)),
      instance_(std::move(instance)),
      socket_(std::move(socket)),
      pid_(pid) {}

SimWorker::~SimWorker() = default;

void SimWorker::begin(process::ChildObserver& observer) {
  child_observer_ = &observer;
  began_ = clock_.now();
  for (const Print& piece : script_.prints) {
    timers_.push_back(clock_.sleep_for(piece.after, [this, &piece] { print(piece.text); }));
  }
  if (script_.fate == Fate::kExitsAtOnce) {
    ends_with_ = script_.exit;
    ends_by_itself_ = true;
    print(script_.last_words);
    after(Duration::zero(), &SimWorker::exit_now);
  } else if (script_.fate != Fate::kNeverListens) {
    after(script_.listen, &SimWorker::listen);
  }
}

void SimWorker::after(Duration delay, void (SimWorker::*what)()) {
  timers_.push_back(clock_.sleep_for(delay, [this, what] { (this->*what)(); }));
}

void SimWorker::print(const std::string& text) {
  if (!alive_) return;
  printed_ += text;
  if (on_print_) on_print_();
}

void SimWorker::listen() {
  if (!alive_) return;
  clock_.post_from("process " + std::to_string(pid_), [self = shared_from_this()] {
    if (self->child_observer_ != nullptr) self->child_observer_->on_notify("listening");
  });
}

void SimWorker::connect(rpc::WorkerObserver& observer) {
  stream_observer_ = &observer;
  if (!alive_) {
    end_stream();
    return;
  }
  switch (script_.fate) {
    case Fate::kExitsLoading:
    case Fate::kSaysLoadFailed:
    case Fate::kSaysLoadFailedAndExits:
    case Fate::kDropsStream:
      after(script_.fate_after, &SimWorker::fate_strikes);
      break;
    case Fate::kServes:
    case Fate::kPrepareError:
    case Fate::kLaunchError:
    case Fate::kExitsAtOnce:
    case Fate::kNeverListens:
    case Fate::kNeverReady:
    case Fate::kDiesReady:
    case Fate::kDiesBusy:
      break;
  }
  load_step();
  if (script_.probed_every > Duration::zero()) be_probed();
}

void SimWorker::disconnect() {
  stream_observer_ = nullptr;
  for (const auto& call : std::vector(calls_)) call->cancel();
}

template <typename Tell>
void SimWorker::tell(Tell tell) {
  clock_.post_from("stream " + std::to_string(pid_), [self = shared_from_this(), tell] {
    if (self->stream_observer_ != nullptr) tell(*self->stream_observer_);
  });
}

void SimWorker::load_step() {
  if (!alive_ || stream_ended_) return;
  const std::uint32_t steps = std::max<std::uint32_t>(script_.progress_steps, 1);
  rpc::WorkerProgress progress;
  progress.phase = "weights";
  progress.fraction = static_cast<float>(steps_done_) / static_cast<float>(steps);
  tell([progress](rpc::WorkerObserver& observer) { observer.on_progress(progress); });
  if (steps_done_ < steps) {
    ++steps_done_;
    after(script_.load / steps, &SimWorker::load_step);
  } else if (script_.fate != Fate::kNeverReady) {
    finish_load();
  }
}

void SimWorker::be_probed() {
  if (!alive_ || stream_ended_ || ready_) return;
  tell([](rpc::WorkerObserver& observer) {
    observer.on_own_request();
    observer.on_probe("it answered 503");
  });
  print("127.0.0.1 - \"POST /v1/completions HTTP/1.1\" 503 Service Unavailable\n");
  after(script_.probed_every, &SimWorker::be_probed);
}

void SimWorker::finish_load() {
  ready_ = true;
  rpc::WorkerReady ready;
  ready.build_id = "sim";
  ready.window = script_.window;
  ready.sequences = script_.sequences;
  ready.longest_token_bytes = script_.longest_token_bytes;
  ready.can_chat = true;
  ready.threads = script_.threads;
  threads_ = script_.threads;
  ready.memory = {{"host", 1000, 200, 30}};
  tell([ready](rpc::WorkerObserver& observer) { observer.on_ready(ready); });
  if (script_.fate == Fate::kDiesReady) after(script_.fate_after, &SimWorker::fate_strikes);
}

void SimWorker::fate_strikes() {
  if (!alive_) return;
  switch (script_.fate) {
    case Fate::kExitsLoading:
    case Fate::kDiesReady:
    case Fate::kDiesBusy:
      die(script_.exit);
      break;
    case Fate::kSaysLoadFailed:
      if (!ready_) say_load_failed();
      break;
    case Fate::kSaysLoadFailedAndExits:
      if (ready_) return;
      say_load_failed();
      die(script_.exit);
      break;
    case Fate::kDropsStream:
      end_stream();
      break;
    case Fate::kServes:
    case Fate::kPrepareError:
    case Fate::kLaunchError:
    case Fate::kExitsAtOnce:
    case Fate::kNeverListens:
    case Fate::kNeverReady:
      break;
  }
}

void SimWorker::say_load_failed() {
  const rpc::WorkerLoadFailed failed{script_.failure_class, script_.reason};
  steps_done_ = 0;
  tell([failed](rpc::WorkerObserver& observer) { observer.on_load_failed(failed); });
}

void SimWorker::signal(int signal) {
  if (!alive_) return;
  if (signal == SIGKILL && !killed_) {
    killed_ = clock_.now();
    ends_with_ = core::Signalled{SIGKILL, false};
    ends_by_itself_ = false;
    after(script_.kill_to_exit, &SimWorker::exit_now);
  }
  if (signal == SIGTERM && !terminated_) {
    terminated_ = clock_.now();
    if (script_.ignores_term || killed_) return;
    ends_with_ = core::Exited{0};
    ends_by_itself_ = false;
    after(script_.term_to_exit, &SimWorker::exit_now);
  }
}

void SimWorker::die(const core::ExitStatus& status) {
  print(script_.last_words);
  ends_with_ = status;
  ends_by_itself_ = alive_ || ends_by_itself_;
  exit_now();
}

void SimWorker::exit_now() {
  if (!std::exchange(alive_, false)) return;
  status_ = ends_with_;
  ended_ = clock_.now();
  if (script_.exit_to_notice > Duration::zero()) {
    after(script_.exit_to_notice, &SimWorker::notice_exit);
  } else {
    notice_exit();
  }
  end_stream();
}

void SimWorker::notice_exit() {
  clock_.post_from("process " + std::to_string(pid_), [self = shared_from_this()] {
    self->reaped_ = true;
    if (self->child_observer_ != nullptr) self->child_observer_->on_exit(self->status_);
  });
}

void SimWorker::end_stream() {
  if (stream_ended_) return;
  stream_ended_ = true;
  for (const auto& call : std::vector(calls_)) {
    call->end(fail(Reason::kWorkerDied, "The connection to the worker broke."));
  }
  if (!script_.has_stream) return;
  tell([](rpc::WorkerObserver& observer) { observer.on_disconnected(); });
}

void SimWorker::abandon() {
  child_observer_ = nullptr;
  if (!alive_) return;
  alive_ = false;
  killed_ = clock_.now();
  reaped_ = true;
  timers_.clear();
  end_stream();
}

std::unique_ptr<rpc::GenerateCall> SimWorker::generate(const core::GenerateRequest& /*request*/,
                                                       SteadyTime deadline,
                                                       std::shared_ptr<rpc::GenerateSink> sink) {
  const auto call = std::make_shared<Call>(*this, deadline, std::move(sink));
  if (!alive_ || stream_ended_) {
    call->end(fail(Reason::kWorkerDied, "The connection to the worker broke."));
  } else {
    calls_.push_back(call);
    if (script_.wedges && calls_.size() == 1) beat();
    if (script_.fate == Fate::kDiesBusy) after(script_.fate_after, &SimWorker::fate_strikes);
  }
  return std::make_unique<CallHandle>(call);
}

namespace {

// Waits for the end of a generation, and answers then.
template <typename Answer>
class AnswerSink : public rpc::GenerateSink {
 public:
  AnswerSink(rpc::OnAnswer<Answer> done, Answer answer)
      : done_(std::move(done)), answer_(std::move(answer)) {}

  bool on_event(core::GenerateEvent /*event*/) override { return true; }
  void on_end(Status status) override {
    const rpc::OnAnswer<Answer> done = std::move(done_);
    if (status) return done(std::move(answer_));
    done(fail(status.error()));
  }

 private:
  rpc::OnAnswer<Answer> done_;
  Answer answer_;
};

std::vector<std::int32_t> bytes_of(std::string_view text) {
  return {text.begin(), text.end()};
}

std::vector<std::int32_t> ids_of(const core::TokenizeRequest& request) {
  if (const auto* text = std::get_if<core::TextInput>(&request.input)) return bytes_of(text->text);
  return bytes_of(std::get<core::ChatInput>(request.input).messages_json);
}

}  // namespace

template <typename Answer>
std::unique_ptr<rpc::WorkerCall> SimWorker::answer(SteadyTime deadline, rpc::OnAnswer<Answer> done,
                                                   Answer answer) {
  return generate({}, deadline,
                  std::make_shared<AnswerSink<Answer>>(std::move(done), std::move(answer)));
}

std::unique_ptr<rpc::WorkerCall> SimWorker::embed(const core::EmbedRequest& request,
                                                  SteadyTime deadline,
                                                  rpc::OnAnswer<core::Embeddings> done) {
  core::Embeddings embeddings;
  for (const core::EmbedInput& input : request.inputs) {
    const auto* tokens = std::get_if<core::TokenInput>(&input);
    const std::vector<std::int32_t> ids =
        tokens != nullptr ? tokens->ids : bytes_of(std::get<core::PromptInput>(input).text);
    embeddings.embeddings.push_back(
        {{ids.begin(), ids.end()}, static_cast<std::uint32_t>(ids.size())});
    embeddings.prompt_tokens += static_cast<std::uint32_t>(ids.size());
  }
  return answer(deadline, std::move(done), std::move(embeddings));
}

std::unique_ptr<rpc::WorkerCall> SimWorker::tokenize(const core::TokenizeRequest& request,
                                                     SteadyTime deadline,
                                                     rpc::OnAnswer<core::Tokens> done) {
  core::Tokens tokens{ids_of(request), {}};
  for (const std::int32_t id : tokens.ids) tokens.texts.emplace_back(1, static_cast<char>(id));
  return answer(deadline, std::move(done), std::move(tokens));
}

std::unique_ptr<rpc::WorkerCall> SimWorker::count_tokens(const core::TokenizeRequest& request,
                                                         SteadyTime deadline,
                                                         rpc::OnAnswer<core::TokenCount> done) {
  return answer(
      deadline, std::move(done),
      core::TokenCount{static_cast<std::uint32_t>(ids_of(request).size()), script_.window});
}

std::unique_ptr<rpc::WorkerCall> SimWorker::detokenize(const core::DetokenizeRequest& request,
                                                       SteadyTime deadline,
                                                       rpc::OnAnswer<core::DetokenizedText> done) {
  core::DetokenizedText text;
  for (const std::int32_t id : request.ids) text.text += static_cast<char>(id);
  return answer(deadline, std::move(done), std::move(text));
}

namespace {

// Makes an answer's body of the tokens of a generation.
class PieceSink : public rpc::GenerateSink {
 public:
  PieceSink(std::shared_ptr<rpc::ForwardSink> sink, rpc::ForwardHead head)
      : sink_(std::move(sink)), head_(std::move(head)) {}

  bool on_event(core::GenerateEvent event) override {
    if (!sink_) return true;
    if (head_) sink_->on_head(*std::exchange(head_, std::nullopt));
    const auto* token = std::get_if<core::TokenEvent>(&event);
    const bool room = token == nullptr || sink_->on_piece(token->text);
    if (room && sink_->complete()) on_end({});
    return room;
  }
  void on_end(Status status) override {
    if (const auto sink = std::move(sink_)) sink->on_end(std::move(status));
  }

 private:
  std::shared_ptr<rpc::ForwardSink> sink_;  // until it has its end
  std::optional<rpc::ForwardHead> head_;    // until it is told
};

}  // namespace

std::unique_ptr<rpc::GenerateCall> SimWorker::forward(rpc::ForwardRequest request,
                                                      SteadyTime deadline,
                                                      std::shared_ptr<rpc::ForwardSink> sink) {
  forwarded_ = std::move(request);
  return generate({}, deadline, std::make_shared<PieceSink>(std::move(sink), script_.head));
}

// As long as there is work that does not get on.
void SimWorker::beat() {
  if (!alive_ || calls_.empty()) return;
  const rpc::WorkerHeartbeat heartbeat{1, static_cast<std::uint32_t>(calls_.size()), 0, 0};
  tell([heartbeat](rpc::WorkerObserver& observer) { observer.on_heartbeat(heartbeat); });
  after(std::chrono::seconds(1), &SimWorker::beat);
}

void SimWorker::forget(Call* call) {
  std::erase_if(calls_, [call](const std::shared_ptr<Call>& one) { return one.get() == call; });
}

}  // namespace berth::sim
