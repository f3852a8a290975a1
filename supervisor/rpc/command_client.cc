#include "supervisor/rpc/command_client.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "supervisor/rpc/command_answers.h"

namespace berth::rpc {
namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(50);
constexpr Duration kLongestPause = std::chrono::seconds(1);
// A program that answers, and is not ready, is disturbed less and less: every tenth of the time
// that this has gone on, at least so often.
constexpr int kShareOfPause = 10;
constexpr Duration kLongestPauseOfOneThatAnswers = std::chrono::seconds(5);
// A stranger has to be seen so often in a row.
constexpr int kLooksAtAStranger = 3;
constexpr Duration kPauseBetweenLooks = std::chrono::milliseconds(300);
constexpr Duration kAskDeadline = std::chrono::seconds(10);
// A first piece of work may take minutes, and a request that was lost is never answered: after
// this, and every so often, it is asked for once more beside the first.
constexpr Duration kAskBeside = std::chrono::seconds(60);

constexpr unsigned int kOk = 200;
constexpr const char* kDidNotAnswer = "it accepted the connection and did not answer";

// Statuses of an endpoint that the program does not have, or has for another kind of model.
bool lacks_endpoint(unsigned int status) {
  switch (status) {
    case 400:
    case 404:
    case 405:
    case 422:
    case 501:
      return true;
    default:
      return false;
  }
}

// A call that was never begun.
class NoCall : public WorkerCall {
 public:
  void cancel() override {}
};

Error not_passed_on() {
  return {Reason::kInvalidArgument,
          "The model is a program of its own (kind = \"command\"), and this version does not pass "
          "requests on to those yet. It can be loaded and unloaded."};
}

}  // namespace

// Looks and asks, one thing at a time, until the program is ready, a stranger answers, or it is
// destroyed. Core strand only.
class CommandClient::Prober {
 public:
  Prober(Clock& clock, std::unique_ptr<CommandPeer> peer, CommandProbe probe,
         std::uint32_t sequences, WorkerObserver& observer)
      : clock_(clock),
        peer_(std::move(peer)),
        probe_(std::move(probe)),
        sequences_(sequences),
        observer_(observer) {
    // Not before this has returned.
    pending_ = clock_.sleep_for(Duration::zero(), [this] { look(); });
  }

 private:
  // Before each request, and after the proof.
  void look() {
    pending_ = peer_->look([this](CommandListener listener) { on_look(std::move(listener)); });
  }

  void on_look(CommandListener listener) {
    const bool proven = std::exchange(proven_, false);
    switch (listener.who) {
      case CommandListener::Who::kNobody:
        strangers_ = 0;
        saw("nobody listened at its address");
        return try_later();
      case CommandListener::Who::kOther:
        if (++strangers_ < kLooksAtAStranger) {
          pending_ = clock_.sleep_for(kPauseBetweenLooks, [this] { look(); });
          return;
        }
        // The port can never become the child's as long as it belongs to another.
        held_.reset();
        pending_.reset();
        return observer_.on_load_failed({"launch", std::move(listener.problem)});
      case CommandListener::Who::kChild:
        strangers_ = 0;
        return proven ? be_ready() : ask();
    }
  }

  void try_later() {
    pending_ = clock_.sleep_for(pause_, [this] { look(); });
    Duration longest = kLongestPause;
    if (answers_since_) {
      longest = std::clamp<Duration>((clock_.now() - *answers_since_) / kShareOfPause, longest,
                                     kLongestPauseOfOneThatAnswers);
    }
    pause_ = std::min(pause_ * 2, longest);
  }

  void saw(const std::string& what) { observer_.on_probe(what); }

  void saw(const Result<CommandAnswer>& answer) {
    if (answer) return saw("it answered " + std::to_string(answer->status));
    saw(answer.error().reason == Reason::kDeadline ? kDidNotAnswer
                                                   : "its connection broke without an answer");
  }

  void call(const CommandRequest& request, void (Prober::*then)(const Result<CommandAnswer>&)) {
    pending_ = peer_->call(request, [this, then](const Result<CommandAnswer>& answer) {
      on_answer(answer);
      (this->*then)(answer);
    });
    on_asked();
  }

  void on_asked() {
    observer_.on_own_request();
    saw(kDidNotAnswer);
  }

  void on_answer(const Result<CommandAnswer>& answer) {
    observer_.on_own_request();
    saw(answer);
    if (answer && !answers_since_) answers_since_ = clock_.now();
  }

  void ask() {
    if (probe_.kind == ProbeKind::kPath) return work({probe_.path, {}, {}});
    if (asked_name_) return ask_for_work();
    call({"/v1/models", {}, kAskDeadline}, &Prober::on_models);
  }

  void on_models(const Result<CommandAnswer>& answer) {
    if (!answer) return try_later();
    asked_name_ = true;
    served_ = {probe_.model, 0};
    if (answer->status == kOk) {
      if (auto served = read_models(answer->body)) served_ = *std::move(served);
    }
    look();
  }

  void ask_for_work() {
    if (probe_.kind == ProbeKind::kEmbedding) {
      work({"/v1/embeddings", embedding_request(served_.name), {}});
    } else if (chat_) {
      work({"/v1/chat/completions", chat_request(served_.name), {}});
    } else {
      work({"/v1/completions", completion_request(served_.name), {}});
    }
  }

  void work(const CommandRequest& request) {
    const std::uint64_t number = ++works_;
    pending_ = peer_->call(request, [this, number](const Result<CommandAnswer>& answer) {
      on_answer(answer);
      number == held_number_ ? on_held(answer) : on_work(answer);
    });
    on_asked();
    beside_ = clock_.sleep_for(kAskBeside, [this] { ask_beside(); });
  }

  // The oldest question that is not answered is kept, and one more beside it.
  void ask_beside() {
    if (held_.armed()) {
      pending_.reset();
      observer_.on_own_request();
    } else {
      held_ = std::exchange(pending_, Timer());
      held_number_ = works_;
    }
    look();
  }

  void on_held(const Result<CommandAnswer>& answer) {
    held_.reset();
    held_number_ = 0;
    // Otherwise the one beside it goes on.
    if (!answer || answer->status != kOk || !proves(answer->body)) return;
    proven_ = true;
    beside_.reset();
    look();
  }

  void on_work(const Result<CommandAnswer>& answer) {
    beside_.reset();
    if (answer && answer->status == kOk && proves(answer->body)) {
      proven_ = true;
      return look();
    }
    if (answer && probe_.kind == ProbeKind::kCompletion && lacks_endpoint(answer->status)) {
      chat_ = !chat_;
      // At once the first time; then both have refused, which may pass.
      if (chat_) return look();
    }
    if (answer && answer->status == kOk) saw("it answered 200 without what it was asked for");
    // A program that was replaced below its address may call its model otherwise.
    asked_name_ = false;
    try_later();
  }

  [[nodiscard]] bool proves(const std::string& body) const {
    switch (probe_.kind) {
      case ProbeKind::kCompletion:
        return proves_completion(body);
      case ProbeKind::kEmbedding:
        return proves_embedding(body);
      case ProbeKind::kPath:
        return true;
    }
    return false;
  }

  void be_ready() {
    held_.reset();
    pending_.reset();
    WorkerReady ready;
    ready.window = served_.window;
    ready.sequences = sequences_;
    ready.can_chat = probe_.kind == ProbeKind::kCompletion;
    observer_.on_ready(ready);
  }

  Clock& clock_;
  const std::unique_ptr<CommandPeer> peer_;
  const CommandProbe probe_;
  const std::uint32_t sequences_;
  WorkerObserver& observer_;
  Duration pause_ = kFirstPause;
  std::optional<SteadyTime> answers_since_;
  int strangers_ = 0;  // looks in a row that saw one
  bool proven_ = false;
  bool asked_name_ = false;
  bool chat_ = false;  // the program has no plain completions
  ServedModel served_;
  std::uint64_t works_ = 0;        // pieces of work that were asked for
  std::uint64_t held_number_ = 0;  // that of held_; 0: none
  // What is waited for; the last members, as they use the others.
  Timer beside_;
  Timer held_;  // a question that is not answered for long
  Timer pending_;
};

CommandClient::CommandClient(Clock& clock, std::unique_ptr<CommandPeer> peer, CommandProbe probe,
                             std::uint32_t sequences, WorkerObserver& observer)
    : clock_(clock),
      prober_(std::make_unique<Prober>(clock, std::move(peer), std::move(probe), sequences,
                                       observer)) {}

CommandClient::~CommandClient() = default;

std::unique_ptr<GenerateCall> CommandClient::generate(const core::GenerateRequest& /*request*/,
                                                      SteadyTime /*deadline*/,
                                                      std::shared_ptr<GenerateSink> sink) {
  clock_.post([sink = std::move(sink)] { sink->on_end(fail(not_passed_on())); });
  return std::make_unique<NoCall>();
}

std::unique_ptr<WorkerCall> CommandClient::embed(const core::EmbedRequest& /*request*/,
                                                 SteadyTime /*deadline*/,
                                                 OnAnswer<core::Embeddings> done) {
  return refuse(std::move(done));
}

std::unique_ptr<WorkerCall> CommandClient::tokenize(const core::TokenizeRequest& /*request*/,
                                                    SteadyTime /*deadline*/,
                                                    OnAnswer<core::Tokens> done) {
  return refuse(std::move(done));
}

std::unique_ptr<WorkerCall> CommandClient::count_tokens(const core::TokenizeRequest& /*request*/,
                                                        SteadyTime /*deadline*/,
                                                        OnAnswer<core::TokenCount> done) {
  return refuse(std::move(done));
}

std::unique_ptr<WorkerCall> CommandClient::detokenize(const core::DetokenizeRequest& /*request*/,
                                                      SteadyTime /*deadline*/,
                                                      OnAnswer<core::DetokenizedText> done) {
  return refuse(std::move(done));
}

template <typename Answer>
std::unique_ptr<WorkerCall> CommandClient::refuse(OnAnswer<Answer> done) {
  clock_.post([done = std::move(done)] { done(fail(not_passed_on())); });
  return std::make_unique<NoCall>();
}

void CommandClient::cancel_load() {
  prober_.reset();
}

void CommandClient::set_threads(std::uint32_t /*threads*/) {}

}  // namespace berth::rpc
