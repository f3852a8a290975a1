#include "tests/unit/cli/fake_daemon.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <stdexcept>

namespace berth::cli::test {
namespace {

constexpr std::chrono::seconds kGenerous{60};

template <typename Script, typename... Arguments>
grpc::Status run(const Script& script, grpc::ServerContext* context, Arguments&... arguments) {
  if (!script) return {grpc::StatusCode::UNIMPLEMENTED, "no script"};
  return script(*context, arguments...);
}

}  // namespace

grpc::Status refuse(grpc::ServerContext& context, grpc::StatusCode code,
                    const v1::ErrorDetail& error) {
  context.AddTrailingMetadata("berth-error-bin", error.SerializeAsString());
  return {code, error.message()};
}

v1::ErrorDetail detail(std::string reason, std::string message) {
  v1::ErrorDetail made;
  made.set_reason(std::move(reason));
  made.set_message(std::move(message));
  return made;
}

bool wait_cancelled(const grpc::ServerContext& context) {
  // The synchronous API tells of a cancel only who asks.
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  const auto until = std::chrono::steady_clock::now() + kGenerous;
  while (!context.IsCancelled()) {
    if (std::chrono::steady_clock::now() > until) return false;
    never.wait_for(lock, std::chrono::milliseconds(2));
  }
  return true;
}

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "bcli.XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

class FakeDaemon::AdminService : public v1::Admin::Service {
 public:
  explicit AdminService(FakeDaemon& daemon) : daemon_(daemon) {}

  grpc::Status GetServerInfo(grpc::ServerContext* context, const v1::GetServerInfoRequest* request,
                             v1::ServerInfo* reply) override {
    return run(daemon_.server_info, context, *request, *reply);
  }
  grpc::Status ListInstances(grpc::ServerContext* context, const v1::ListInstancesRequest* request,
                             v1::ListInstancesResponse* reply) override {
    return run(daemon_.list_instances, context, *request, *reply);
  }
  grpc::Status LoadModel(grpc::ServerContext* context, const v1::LoadModelRequest* request,
                         grpc::ServerWriter<v1::LoadEvent>* writer) override {
    return run(daemon_.load, context, *request, *writer);
  }
  grpc::Status RetryModel(grpc::ServerContext* context, const v1::LoadModelRequest* request,
                          grpc::ServerWriter<v1::LoadEvent>* writer) override {
    return run(daemon_.retry, context, *request, *writer);
  }
  grpc::Status ListFailures(grpc::ServerContext* context, const v1::ListFailuresRequest* request,
                            v1::ListFailuresResponse* reply) override {
    return run(daemon_.list_failures, context, *request, *reply);
  }
  grpc::Status ExplainModel(grpc::ServerContext* context, const v1::ExplainModelRequest* request,
                            v1::ModelReport* reply) override {
    return run(daemon_.explain, context, *request, *reply);
  }
  grpc::Status UnloadModel(grpc::ServerContext* context, const v1::UnloadModelRequest* request,
                           v1::UnloadModelResponse* reply) override {
    return run(daemon_.unload, context, *request, *reply);
  }
  grpc::Status PlanModel(grpc::ServerContext* context, const v1::PlanModelRequest* request,
                         v1::ModelPlan* reply) override {
    return run(daemon_.plan, context, *request, *reply);
  }
  grpc::Status GetMemory(grpc::ServerContext* context, const v1::GetMemoryRequest* request,
                         v1::Memory* reply) override {
    return run(daemon_.memory, context, *request, *reply);
  }
  grpc::Status PinModel(grpc::ServerContext* context, const v1::PinModelRequest* request,
                        v1::PinModelResponse* reply) override {
    return run(daemon_.pin, context, *request, *reply);
  }
  grpc::Status UnpinModel(grpc::ServerContext* context, const v1::UnpinModelRequest* request,
                          v1::UnpinModelResponse* reply) override {
    return run(daemon_.unpin, context, *request, *reply);
  }
  grpc::Status ReadLog(grpc::ServerContext* context, const v1::ReadLogRequest* request,
                       grpc::ServerWriter<v1::LogChunk>* writer) override {
    return run(daemon_.read_log, context, *request, *writer);
  }
  grpc::Status WatchEvents(grpc::ServerContext* context, const v1::WatchEventsRequest* request,
                           grpc::ServerWriter<v1::Event>* writer) override {
    return run(daemon_.watch_events, context, *request, *writer);
  }
  grpc::Status GetConfig(grpc::ServerContext* context, const v1::GetConfigRequest* request,
                         v1::EffectiveConfig* reply) override {
    return run(daemon_.config, context, *request, *reply);
  }

 private:
  FakeDaemon& daemon_;
};

class FakeDaemon::InferenceService : public v1::Inference::Service {
 public:
  explicit InferenceService(FakeDaemon& daemon) : daemon_(daemon) {}

  grpc::Status Generate(grpc::ServerContext* context, const v1::GenerateRequest* request,
                        grpc::ServerWriter<v1::GenerateEvent>* writer) override {
    return run(daemon_.generate, context, *request, *writer);
  }
  grpc::Status ListModels(grpc::ServerContext* context, const v1::ListModelsRequest* request,
                          v1::ListModelsResponse* reply) override {
    return run(daemon_.list_models, context, *request, *reply);
  }

 private:
  FakeDaemon& daemon_;
};

FakeDaemon::FakeDaemon()
    : socket_(directory_.path() + "/d.sock"),
      admin_(std::make_unique<AdminService>(*this)),
      inference_(std::make_unique<InferenceService>(*this)) {
  start();
}

FakeDaemon::~FakeDaemon() {
  stop();
}

std::string FakeDaemon::endpoint() const {
  return "unix:" + socket_;
}

void FakeDaemon::start() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(endpoint(), grpc::InsecureServerCredentials());
  builder.RegisterService(admin_.get());
  builder.RegisterService(inference_.get());
  server_ = builder.BuildAndStart();
  if (!server_) throw std::runtime_error("cannot listen on " + socket_);
}

void FakeDaemon::stop() {
  if (!server_) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_.reset();
}

v1::GenerateEvent token(std::string text) {
  v1::GenerateEvent event;
  event.mutable_token()->set_text(std::move(text));
  return event;
}

v1::GenerateEvent done(std::string finish_reason) {
  v1::GenerateEvent event;
  v1::Done& end = *event.mutable_done();
  end.set_finish_reason(std::move(finish_reason));
  end.mutable_usage()->set_prompt_tokens(12);
  end.mutable_usage()->set_completion_tokens(34);
  end.mutable_timings()->set_decode_us(1'000'000);
  end.mutable_timings()->set_first_token_us(120'000);
  return event;
}

v1::GenerateEvent loading(std::string phase, float fraction) {
  v1::GenerateEvent event;
  event.mutable_loading()->set_phase(std::move(phase));
  event.mutable_loading()->set_fraction(fraction);
  return event;
}

v1::Model model(std::string name, bool can_chat) {
  v1::Model made;
  made.set_name(std::move(name));
  made.set_kind("llama");
  made.set_can_chat(can_chat);
  made.set_state("absent");
  return made;
}

}  // namespace berth::cli::test
