#include "supervisor/rpc/command_client.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "supervisor/rpc/command_answers.h"

namespace berth::rpc {
namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(50);
constexpr Duration kLongestPause = std::chrono::seconds(1);
// The first token of a program may wait for kernels that are compiled.
constexpr Duration kWorkDeadline = std::chrono::seconds(60);
constexpr Duration kAskDeadline = std::chrono::seconds(10);

constexpr unsigned int kOk = 200;

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

// A generation that was never begun.
class NoCall : public GenerateCall {
 public:
  void cancel() override {}
  void resume() override {}
};

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
  void look() {
    pending_ = peer_->look([this](CommandListener listener) {
      switch (listener.who) {
        case CommandListener::Who::kNobody:
          return try_later();
        case CommandListener::Who::kOther:
          // The port can never become the child's as long as it belongs to another.
          pending_.reset();
          return observer_.on_load_failed({"launch", std::move(listener.problem)});
        case CommandListener::Who::kChild:
          return ask();
      }
    });
  }

  void try_later() {
    pending_ = clock_.sleep_for(pause_, [this] { look(); });
    pause_ = std::min(pause_ * 2, kLongestPause);
  }

  void ask() {
    if (probe_.kind == ProbeKind::kPath) return work({probe_.path, {}, kWorkDeadline});
    if (asked_name_) return ask_for_work();
    pending_ = peer_->call({"/v1/models", {}, kAskDeadline}, [this](Result<CommandAnswer> answer) {
      if (!answer) return try_later();
      asked_name_ = true;
      served_.name = probe_.model;
      if (answer->status == kOk) {
        if (auto served = read_models(answer->body)) served_ = *std::move(served);
      }
      ask_for_work();
    });
  }

  void ask_for_work() {
    if (probe_.kind == ProbeKind::kEmbedding) {
      work({"/v1/embeddings", embedding_request(served_.name), kWorkDeadline});
    } else if (chat_) {
      work({"/v1/chat/completions", chat_request(served_.name), kWorkDeadline});
    } else {
      work({"/v1/completions", completion_request(served_.name), kWorkDeadline});
    }
  }

  void work(const CommandRequest& request) {
    pending_ = peer_->call(request, [this](const Result<CommandAnswer>& answer) {
      if (answer && answer->status == kOk && proves(answer->body)) return be_ready();
      if (answer && probe_.kind == ProbeKind::kCompletion && lacks_endpoint(answer->status)) {
        chat_ = !chat_;
        // At once the first time; then both have refused, which may pass.
        if (chat_) return ask_for_work();
      }
      // A program that was replaced below its address may call its model otherwise.
      asked_name_ = false;
      try_later();
    });
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
  bool asked_name_ = false;
  bool chat_ = false;  // the program has no plain completions
  ServedModel served_;
  Timer pending_;  // what is waited for; the last member, as it uses the others
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
  clock_.post([sink = std::move(sink)] {
    sink->on_end(fail(Reason::kInvalidArgument,
                      "The model is a program of its own (kind = \"command\"), and this version "
                      "does not pass requests on to those yet. It can be loaded and unloaded."));
  });
  return std::make_unique<NoCall>();
}

void CommandClient::cancel_load() {
  prober_.reset();
}

void CommandClient::set_threads(std::uint32_t /*threads*/) {}

}  // namespace berth::rpc
