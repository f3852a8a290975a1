#include "tests/stress/client.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "tests/stress/observed.h"

namespace berth::stress {
namespace {

using std::chrono::steady_clock;

std::optional<v1::ErrorDetail> trailer_of(const grpc::ClientContext& context) {
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto found = trailers.find("berth-error-bin");
  if (found == trailers.end()) return std::nullopt;
  v1::ErrorDetail detail;
  detail.ParseFromArray(found->second.data(), static_cast<int>(found->second.size()));
  return detail;
}

// A context that behaves as it should.
class Context {
 public:
  Context(Canceller& canceller, const Manners& manners) : canceller_(canceller) {
    context_.set_deadline(std::chrono::system_clock::now() +
                          manners.deadline.value_or(Client::kBound));
    if (manners.cancel_after) canceller_.cancel_after(context_, *manners.cancel_after);
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { canceller_.forget(context_); }

  grpc::ClientContext& get() { return context_; }

 private:
  Canceller& canceller_;
  grpc::ClientContext context_;
};

// Of a call with one answer, which failed.
Report failure(const grpc::Status& status, const grpc::ClientContext& context,
               const Manners& manners) {
  if (const auto detail = trailer_of(context)) {
    return {detail->reason(), problems_of_error(*detail, status)};
  }
  if (status.error_code() == grpc::StatusCode::CANCELLED && manners.cancel_after) {
    return {"cancelled", {}};
  }
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED && manners.deadline) {
    return {"client's deadline", {}};
  }
  const auto code = "status " + std::to_string(status.error_code());
  return {code, {code + ": " + status.error_message()}};
}

double length_of(const google::protobuf::RepeatedField<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

// How alike two vectors of length 1 are: 1 is the same.
double likeness(const std::vector<float>& one, const std::vector<float>& other) {
  if (one.size() != other.size()) return 0;
  double sum = 0;
  for (std::size_t i = 0; i < one.size(); ++i) sum += static_cast<double>(one[i]) * other[i];
  return sum;
}

}  // namespace

Canceller::Canceller() : thread_([this] { run(); }) {}

Canceller::~Canceller() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Canceller::cancel_after(grpc::ClientContext& context, Milliseconds delay) {
  const std::lock_guard lock(mutex_);
  due_.emplace(steady_clock::now() + delay, &context);
  changed_.notify_one();
}

void Canceller::forget(grpc::ClientContext& context) {
  const std::lock_guard lock(mutex_);
  std::erase_if(due_, [&](const auto& entry) { return entry.second == &context; });
}

void Canceller::run() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    if (due_.empty()) {
      changed_.wait(lock);
    } else if (due_.begin()->first <= steady_clock::now()) {
      due_.begin()->second->TryCancel();
      due_.erase(due_.begin());
    } else {
      const auto next = due_.begin()->first;
      changed_.wait_until(lock, next);
    }
  }
}

bool Patience::wait(Milliseconds time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [this] { return ended_; });
}

void Patience::end() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
}

Client::Client(const std::string& socket, const Target& target, const std::vector<Canary>& canaries,
               Canceller& canceller, Patience& patience)
    : target_(target), canaries_(canaries), canceller_(canceller), patience_(patience) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  stub_ = v1::Worker::NewStub(
      grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments));
}

Report Client::make(const Call& call) {
  return std::visit([&](const auto& what) { return make(what, call.manners); }, call.what);
}

Report Client::make(const GenerateCall& call, const Manners& manners) {
  Context context(canceller_, manners);
  const auto stream = stub_->Generate(&context.get(), call.request);
  Observed observed(call.request, target_);
  v1::GenerateEvent event;
  auto pauses = manners.pauses;
  while (stream->Read(&event)) {
    observed.on_event(event);
    if (pauses > 0) {
      --pauses;
      patience_.wait(manners.pause);
    }
  }
  const auto status = stream->Finish();
  observed.on_end(status, trailer_of(context.get()), manners, call.wrong);
  return {observed.result(), observed.problems()};
}

Report Client::make(const CanaryCall& call, const Manners& /*manners*/) {
  const auto& canary = canaries_.at(call.which);
  if (!target_.generates) {
    const auto now = vector(canary.embed);
    constexpr double kTheSame = 0.999;
    if (!now) return {"failed", {"a known text was not embedded"}};
    const auto same = likeness(*now, canary.vector);
    if (same > kTheSame) return {"right", {}};
    return {"WRONG", {"a known text has another vector: likeness " + std::to_string(same)}};
  }
  auto request = canary.request;
  request.set_cache_scope(call.scope);
  const auto text = answer(request);
  if (!text) return {"failed", {"a known question was not answered"}};
  if (*text == canary.text) return {"right", {}};
  return {"WRONG", {"the answer should be \"" + canary.text + "\", but is \"" + *text + "\""}};
}

std::optional<std::string> Client::answer(const v1::GenerateRequest& request) {
  Context context(canceller_, Manners());
  const auto stream = stub_->Generate(&context.get(), request);
  std::string text;
  bool done = false;
  v1::GenerateEvent event;
  while (stream->Read(&event)) {
    text += event.token().text();
    done = done || event.has_done();
  }
  const auto status = stream->Finish();
  if (!status.ok() || !done) return std::nullopt;
  return text;
}

std::optional<std::vector<float>> Client::vector(const v1::EmbedRequest& request) {
  Context context(canceller_, Manners());
  v1::EmbedResponse response;
  const auto status = stub_->Embed(&context.get(), request, &response);
  if (!status.ok() || response.embeddings_size() != request.inputs_size()) return std::nullopt;
  const auto& values = response.embeddings(0).values();
  return std::vector<float>(values.begin(), values.end());
}

Report Client::make(const EmbedCall& call, const Manners& manners) {
  Context context(canceller_, manners);
  v1::EmbedResponse response;
  const auto status = stub_->Embed(&context.get(), call.request, &response);
  if (!status.ok()) return failure(status, context.get(), manners);
  Report report{"vectors", {}};
  if (response.embeddings_size() != call.request.inputs_size()) {
    report.problems.push_back(std::to_string(response.embeddings_size()) + " vectors");
  }
  const auto size =
      call.request.has_dimensions() ? call.request.dimensions() : target_.embedding_size;
  const bool normal = !call.request.has_normalize() || call.request.normalize();
  std::uint64_t tokens = 0;
  for (const auto& embedding : response.embeddings()) {
    tokens += embedding.tokens();
    if (static_cast<std::uint32_t>(embedding.values_size()) != size) {
      report.problems.push_back("a vector of " + std::to_string(embedding.values_size()));
    }
    const auto length = length_of(embedding.values());
    if (!std::isfinite(length) || (normal && length != 0 && std::abs(length - 1) > 1e-3)) {
      report.problems.push_back("a vector of the length " + std::to_string(length));
    }
  }
  if (tokens != response.prompt_tokens()) report.problems.emplace_back("tokens do not add up");
  return report;
}

Report Client::make(const TokenizeCall& call, const Manners& manners) {
  v1::TokenizeResponse tokens;
  {
    Context context(canceller_, manners);
    const auto status = stub_->Tokenize(&context.get(), call.request, &tokens);
    if (!status.ok()) return failure(status, context.get(), manners);
  }
  Context context(canceller_, manners);
  v1::CountTokensResponse count;
  const auto status = stub_->CountTokens(&context.get(), call.request, &count);
  if (!status.ok()) {
    auto report = failure(status, context.get(), manners);
    if (report.result == "invalid_argument") report.problems.emplace_back("tokens, but no number");
    return report;
  }
  Report report{"tokens", {}};
  if (tokens.ids_size() != tokens.texts_size() ||
      static_cast<std::uint32_t>(tokens.ids_size()) != count.tokens() ||
      count.window() != target_.window) {
    report.problems.push_back(std::to_string(tokens.ids_size()) + " ids, " +
                              std::to_string(tokens.texts_size()) + " texts, " +
                              count.ShortDebugString());
  }
  return report;
}

Report Client::make(const DetokenizeCall& call, const Manners& manners) {
  Context context(canceller_, manners);
  v1::DetokenizeResponse response;
  const auto status = stub_->Detokenize(&context.get(), call.request, &response);
  if (!status.ok()) return failure(status, context.get(), manners);
  return {"text", {}};
}

}  // namespace berth::stress
