#include "supervisor/rpc/command_prober.h"

#include <algorithm>
#include <chrono>
#include <utility>

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

}  // namespace

CommandProber::CommandProber(std::shared_ptr<CommandSession> session, CommandProbe probe,
                             std::uint32_t sequences, WorkerObserver& observer)
    : session_(std::move(session)),
      clock_(session_->clock),
      peer_(*session_->peer),
      probe_(std::move(probe)),
      sequences_(sequences),
      observer_(observer),
      pause_(kFirstPause),
      beside_pause_(kAskBeside) {
  served_.name = probe_.model;
  // Not before this has returned.
  pending_ = clock_.sleep_for(Duration::zero(), [this] { look(); });
}

// Before each request, and after the proof.
void CommandProber::look() {
  pending_ = peer_.look([this](CommandListener listener) { on_look(std::move(listener)); });
}

void CommandProber::on_look(CommandListener listener) {
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
      return proven ? on_proven() : ask();
  }
}

void CommandProber::try_later() {
  pending_ = clock_.sleep_for(pause_, [this] { look(); });
  Duration longest = kLongestPause;
  if (answers_since_) {
    longest = std::clamp<Duration>((clock_.now() - *answers_since_) / kShareOfPause, longest,
                                   kLongestPauseOfOneThatAnswers);
  }
  pause_ = std::min(pause_ * 2, longest);
}

void CommandProber::saw(const Result<CommandAnswer>& answer) {
  if (answer) return saw("it answered " + std::to_string(answer->status));
  saw(answer.error().reason == Reason::kDeadline ? kDidNotAnswer
                                                 : "its connection broke without an answer");
}

void CommandProber::call(const CommandRequest& request, Then then) {
  pending_ = peer_.call(request, [this, then](const Result<CommandAnswer>& answer) {
    on_answer(answer);
    (this->*then)(answer);
  });
  on_asked();
}

void CommandProber::on_asked() {
  observer_.on_own_request();
  saw(kDidNotAnswer);
}

void CommandProber::on_answer(const Result<CommandAnswer>& answer) {
  observer_.on_own_request();
  saw(answer);
  if (answer && !answers_since_) answers_since_ = clock_.now();
}

void CommandProber::ask() {
  if (probe_.kind == ProbeKind::kPath) return work({probe_.path, {}, {}});
  if (asked_name_) return ask_for_work();
  call({"/v1/models", {}, kAskDeadline}, &CommandProber::on_models);
}

void CommandProber::take_models(const Result<CommandAnswer>& answer) {
  served_ = {probe_.model, 0};
  if (!answer || answer->status != kOk) return;
  if (auto served = read_models(answer->body)) served_ = *std::move(served);
}

void CommandProber::on_models(const Result<CommandAnswer>& answer) {
  if (!answer) return try_later();
  asked_name_ = true;
  take_models(answer);
  look();
}

void CommandProber::ask_for_work() {
  if (probe_.kind == ProbeKind::kEmbedding) {
    work({"/v1/embeddings", embedding_request(served_.name), {}});
  } else if (chat_) {
    work({"/v1/chat/completions", chat_request(served_.name), {}});
  } else {
    work({"/v1/completions", completion_request(served_.name), {}});
  }
}

void CommandProber::work(const CommandRequest& request) {
  const std::uint64_t number = ++works_;
  pending_ = peer_.call(request, [this, number](const Result<CommandAnswer>& answer) {
    on_answer(answer);
    number == held_number_ ? on_held(answer) : on_work(answer);
  });
  on_asked();
  beside_ = clock_.sleep_for(beside_pause_, [this] { ask_beside(); });
}

// The oldest question that is not answered is kept, and one more beside it, each time for twice as
// long: where the oldest was lost, one that takes its time is waited for in the end.
void CommandProber::ask_beside() {
  if (held_.armed()) {
    pending_.reset();
    beside_pause_ *= 2;
    observer_.on_own_request();
  } else {
    held_ = std::exchange(pending_, Timer());
    held_number_ = works_;
  }
  look();
}

void CommandProber::on_held(const Result<CommandAnswer>& answer) {
  held_.reset();
  held_number_ = 0;
  // Otherwise the one beside it goes on.
  if (!answer || answer->status != kOk || !proves(answer->body)) return;
  proven_ = true;
  beside_.reset();
  look();
}

void CommandProber::on_work(const Result<CommandAnswer>& answer) {
  beside_.reset();
  beside_pause_ = kAskBeside;
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

bool CommandProber::proves(const std::string& body) const {
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

void CommandProber::on_proven() {
  // One that is asked for a path has not said yet what it calls its model, which requests need.
  if (probe_.kind != ProbeKind::kPath) return be_ready();
  call({"/v1/models", {}, kAskDeadline}, &CommandProber::on_models_of_a_proven_one);
}

void CommandProber::on_models_of_a_proven_one(const Result<CommandAnswer>& answer) {
  take_models(answer);
  be_ready();
}

void CommandProber::be_ready() {
  held_.reset();
  pending_.reset();
  session_->model = served_.name;
  WorkerReady ready;
  ready.window = served_.window;
  ready.sequences = sequences_;
  ready.can_chat = probe_.kind == ProbeKind::kCompletion;
  observer_.on_ready(ready);
}

}  // namespace berth::rpc
