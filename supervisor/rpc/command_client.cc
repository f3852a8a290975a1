#include "supervisor/rpc/command_client.h"

#include <utility>

#include "supervisor/rpc/command_body.h"
#include "supervisor/rpc/command_embed.h"
#include "supervisor/rpc/command_forward.h"
#include "supervisor/rpc/command_generate.h"

namespace berth::rpc {

CommandClient::CommandClient(Clock& clock, std::unique_ptr<CommandPeer> peer, CommandProbe probe,
                             std::uint32_t sequences, WorkerObserver& observer,
                             CommandSession::RunBlocking run_blocking)
    : session_(std::make_shared<CommandSession>(clock, std::move(peer), std::move(run_blocking))),
      prober_(std::make_unique<CommandProber>(session_, std::move(probe), sequences, observer)) {}

CommandClient::~CommandClient() = default;

std::unique_ptr<GenerateCall> CommandClient::generate(const core::GenerateRequest& request,
                                                      SteadyTime deadline,
                                                      std::shared_ptr<GenerateSink> sink) {
  Result<ForwardRequest> body = generation_body(request);
  if (!body) {
    session_->clock.post(
        [sink = std::move(sink), error = body.error()] { sink->on_end(fail(error)); });
    return std::make_unique<NoCall>();
  }
  return start_command_call(session_, deadline,
                            generate_reader(session_->clock, *std::move(body), std::move(sink)));
}

std::unique_ptr<WorkerCall> CommandClient::forward(ForwardRequest request, SteadyTime deadline,
                                                   std::shared_ptr<ForwardSink> sink) {
  return start_command_call(session_, deadline,
                            forward_reader(std::move(request), std::move(sink)));
}

std::unique_ptr<WorkerCall> CommandClient::embed(const core::EmbedRequest& request,
                                                 SteadyTime deadline,
                                                 OnAnswer<core::Embeddings> done) {
  Result<ForwardRequest> body = embedding_body(request);
  if (!body) return refuse(std::move(done), body.error());
  return start_command_call(session_, deadline,
                            embed_reader(*std::move(body), request, std::move(done)));
}

std::unique_ptr<WorkerCall> CommandClient::tokenize(const core::TokenizeRequest& /*request*/,
                                                    SteadyTime /*deadline*/,
                                                    OnAnswer<core::Tokens> done) {
  return refuse(std::move(done), no_tokens());
}

std::unique_ptr<WorkerCall> CommandClient::count_tokens(const core::TokenizeRequest& /*request*/,
                                                        SteadyTime /*deadline*/,
                                                        OnAnswer<core::TokenCount> done) {
  return refuse(std::move(done), no_tokens());
}

std::unique_ptr<WorkerCall> CommandClient::detokenize(const core::DetokenizeRequest& /*request*/,
                                                      SteadyTime /*deadline*/,
                                                      OnAnswer<core::DetokenizedText> done) {
  return refuse(std::move(done), no_tokens());
}

template <typename Answer>
std::unique_ptr<WorkerCall> CommandClient::refuse(OnAnswer<Answer> done, Error why) {
  session_->clock.post([done = std::move(done), why = std::move(why)] { done(fail(why)); });
  return std::make_unique<NoCall>();
}

Error CommandClient::no_tokens() {
  return {Reason::kInvalidArgument,
          "The model is a program of its own (kind = \"command\"), which cannot be asked about its "
          "tokens: OpenAI's interface has no words for that."};
}

void CommandClient::cancel_load() {
  prober_.reset();
}

void CommandClient::set_threads(std::uint32_t /*threads*/) {}

}  // namespace berth::rpc
