#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/rpc/worker_client.h"

namespace berth::rpc {

// What proves that a command worker is ready (L6). An answer to /health is not among them.
enum class ProbeKind : std::uint8_t { kCompletion, kEmbedding, kPath };

struct CommandProbe {
  ProbeKind kind = ProbeKind::kCompletion;
  std::string path;   // of kPath: must answer 200
  std::string model;  // where the program does not say what it calls its model
};

// Who answers at the address of a program.
struct CommandListener {
  enum class Who : std::uint8_t { kNobody, kChild, kOther };
  Who who = Who::kNobody;
  std::string problem;  // of kOther: "port 1234 is held by pid 12 (nginx)"
};

struct CommandRequest {
  std::string path;
  std::string body;     // JSON of a POST; empty: GET
  Duration deadline{};  // zero: none, it ends with its timer
};
struct CommandAnswer {
  unsigned int status = 0;
  std::string body;  // bounded by whoever read it
};

// The program at the other end; the seam to the network. Core strand only. Each call answers once
// on the core strand, never from within the call, unless its timer is dropped first.
class CommandPeer {
 public:
  CommandPeer() = default;
  CommandPeer(const CommandPeer&) = delete;
  CommandPeer& operator=(const CommandPeer&) = delete;
  virtual ~CommandPeer() = default;

  // Looks who listens, without connecting (L27).
  virtual Timer look(std::function<void(CommandListener)> done) = 0;
  // One HTTP request with the instance's own key.
  virtual Timer call(const CommandRequest& request,
                     std::function<void(Result<CommandAnswer>)> done) = 0;
};

// A program that speaks HTTP, in the place of a worker of our own. Asks it until it has done a real
// piece of its work, then says that it is ready; what it says of itself is not trusted further than
// that. The piece of work has no time of its own, as a first one may compile for minutes: whoever
// watches the load says when it has waited enough (L7); it is asked for again beside, every minute,
// as a request may get lost. Before each request, and once more after
// the proof, it is looked who listens there: nothing is sent to another process and nothing is
// believed of one (L27). One look sees several moments, so that only some in a row that see a
// stranger fail the load. It never says that the program is gone: its exit does.
//
// Core strand only, but for what starts a call. `observer` outlives it; its callbacks come from
// timers and answers, never from within the constructor.
class CommandClient : public WorkerClient {
 public:
  CommandClient(Clock& clock, std::unique_ptr<CommandPeer> peer, CommandProbe probe,
                std::uint32_t sequences, WorkerObserver& observer);
  CommandClient(const CommandClient&) = delete;
  CommandClient& operator=(const CommandClient&) = delete;
  ~CommandClient() override;

  // These end at once with kInvalidArgument: a program is served over HTTP alone.
  std::unique_ptr<GenerateCall> generate(const core::GenerateRequest& request, SteadyTime deadline,
                                         std::shared_ptr<GenerateSink> sink) override;
  std::unique_ptr<WorkerCall> embed(const core::EmbedRequest& request, SteadyTime deadline,
                                    OnAnswer<core::Embeddings> done) override;
  std::unique_ptr<WorkerCall> tokenize(const core::TokenizeRequest& request, SteadyTime deadline,
                                       OnAnswer<core::Tokens> done) override;
  std::unique_ptr<WorkerCall> count_tokens(const core::TokenizeRequest& request,
                                           SteadyTime deadline,
                                           OnAnswer<core::TokenCount> done) override;
  std::unique_ptr<WorkerCall> detokenize(const core::DetokenizeRequest& request,
                                         SteadyTime deadline,
                                         OnAnswer<core::DetokenizedText> done) override;
  // Asks no more.
  void cancel_load() override;
  // A program has no way to be told.
  void set_threads(std::uint32_t threads) override;

 private:
  class Prober;
  template <typename Answer>
  std::unique_ptr<WorkerCall> refuse(OnAnswer<Answer> done);

  Clock& clock_;
  std::unique_ptr<Prober> prober_;
};

}  // namespace berth::rpc
