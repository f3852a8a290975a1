#pragma once

#include <cstdint>
#include <memory>

#include "common/clock.h"
#include "supervisor/rpc/command_call.h"
#include "supervisor/rpc/command_peer.h"
#include "supervisor/rpc/command_prober.h"
#include "supervisor/rpc/worker_client.h"

namespace berth::rpc {

// A program that speaks HTTP, in the place of a worker of our own: asks it until it is ready, and
// passes requests on to it. It never says that the program is gone: its exit does.
//
// Core strand only, but for what starts a call; a large answer is read by `run_blocking`, on the
// pool. `observer` outlives it; its callbacks come from
// timers and answers, never from within the constructor.
class CommandClient : public WorkerClient {
 public:
  CommandClient(Clock& clock, std::unique_ptr<CommandPeer> peer, CommandProbe probe,
                std::uint32_t sequences, WorkerObserver& observer,
                CommandSession::RunBlocking run_blocking = {});
  CommandClient(const CommandClient&) = delete;
  CommandClient& operator=(const CommandClient&) = delete;
  ~CommandClient() override;

  // Asks the program for it over its HTTP. Errors, besides those of a worker: kInvalidArgument
  // (what the program refused, or no program can be asked for), kQueueFull (it said 429).
  std::unique_ptr<GenerateCall> generate(const core::GenerateRequest& request, SteadyTime deadline,
                                         std::shared_ptr<GenerateSink> sink) override;
  std::unique_ptr<WorkerCall> forward(ForwardRequest request, SteadyTime deadline,
                                      std::shared_ptr<ForwardSink> sink) override;
  // Asks the program for it over its HTTP. Errors as above.
  std::unique_ptr<WorkerCall> embed(const core::EmbedRequest& request, SteadyTime deadline,
                                    OnAnswer<core::Embeddings> done) override;
  // These end at once with kInvalidArgument: a program cannot be asked for its tokens.
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
  template <typename Answer>
  std::unique_ptr<WorkerCall> refuse(OnAnswer<Answer> done, Error why);
  static Error no_tokens();

  const std::shared_ptr<CommandSession> session_;
  std::unique_ptr<CommandProber> prober_;
};

}  // namespace berth::rpc
