#include "supervisor/residency/worker_handle.h"

#include <memory>
#include <string>
#include <utility>

#include "supervisor/residency/in_flight.h"
#include "supervisor/rpc/worker_client.h"

namespace berth::residency {

WorkerHandle::WorkerHandle(std::weak_ptr<rpc::WorkerObserver> instance)
    : instance_(std::move(instance)), in_flight_(std::make_shared<InFlight>()) {}

std::shared_ptr<WorkerHandle> WorkerHandle::connect(rpc::WorkerConnector& connector,
                                                    const std::string& socket,
                                                    const std::string& instance_id,
                                                    std::weak_ptr<rpc::WorkerObserver> instance) {
  std::shared_ptr<WorkerHandle> handle(new WorkerHandle(std::move(instance)));
  handle->client_ = connector.connect(socket, instance_id, *handle);
  return handle;
}

std::unique_ptr<rpc::GenerateCall> WorkerHandle::generate(const core::GenerateRequest& request,
                                                          SteadyTime deadline,
                                                          std::shared_ptr<rpc::GenerateSink> sink) {
  return in_flight_->generate(*client_, request, deadline, std::move(sink));
}

std::unique_ptr<rpc::WorkerCall> WorkerHandle::embed(const core::EmbedRequest& request,
                                                     SteadyTime deadline,
                                                     rpc::OnAnswer<core::Embeddings> done) {
  return in_flight_->ask<core::Embeddings>(
      std::move(done), [&](rpc::OnAnswer<core::Embeddings> answered) {
        return client_->embed(request, deadline, std::move(answered));
      });
}

std::unique_ptr<rpc::WorkerCall> WorkerHandle::tokenize(const core::TokenizeRequest& request,
                                                        SteadyTime deadline,
                                                        rpc::OnAnswer<core::Tokens> done) {
  return in_flight_->ask<core::Tokens>(std::move(done), [&](rpc::OnAnswer<core::Tokens> answered) {
    return client_->tokenize(request, deadline, std::move(answered));
  });
}

std::unique_ptr<rpc::WorkerCall> WorkerHandle::count_tokens(const core::TokenizeRequest& request,
                                                            SteadyTime deadline,
                                                            rpc::OnAnswer<core::TokenCount> done) {
  return in_flight_->ask<core::TokenCount>(
      std::move(done), [&](rpc::OnAnswer<core::TokenCount> answered) {
        return client_->count_tokens(request, deadline, std::move(answered));
      });
}

std::unique_ptr<rpc::WorkerCall> WorkerHandle::detokenize(
    const core::DetokenizeRequest& request, SteadyTime deadline,
    rpc::OnAnswer<core::DetokenizedText> done) {
  return in_flight_->ask<core::DetokenizedText>(
      std::move(done), [&](rpc::OnAnswer<core::DetokenizedText> answered) {
        return client_->detokenize(request, deadline, std::move(answered));
      });
}

std::unique_ptr<rpc::WorkerCall> WorkerHandle::forward(rpc::ForwardRequest request,
                                                       SteadyTime deadline,
                                                       std::shared_ptr<rpc::ForwardSink> sink) {
  return in_flight_->forward(*client_, std::move(request), deadline, std::move(sink));
}

void WorkerHandle::cancel_load() {
  client_->cancel_load();
}

void WorkerHandle::set_threads(std::uint32_t threads) {
  client_->set_threads(threads);
}

void WorkerHandle::revoke() {
  in_flight_->revoke();
}

void WorkerHandle::on_progress(const rpc::WorkerProgress& progress) {
  if (const auto instance = instance_.lock()) instance->on_progress(progress);
}
void WorkerHandle::on_own_request() {
  if (const auto instance = instance_.lock()) instance->on_own_request();
}
void WorkerHandle::on_probe(std::string_view saw) {
  if (const auto instance = instance_.lock()) instance->on_probe(saw);
}
void WorkerHandle::on_ready(const rpc::WorkerReady& ready) {
  if (const auto instance = instance_.lock()) instance->on_ready(ready);
}
void WorkerHandle::on_load_failed(const rpc::WorkerLoadFailed& failed) {
  if (const auto instance = instance_.lock()) instance->on_load_failed(failed);
}
void WorkerHandle::on_heartbeat(const rpc::WorkerHeartbeat& heartbeat) {
  if (const auto instance = instance_.lock()) instance->on_heartbeat(heartbeat);
}
void WorkerHandle::on_disconnected() {
  if (const auto instance = instance_.lock()) instance->on_disconnected();
}

}  // namespace berth::residency
