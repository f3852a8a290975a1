#include "supervisor/rpc/grpc_worker_client.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "berth/v1/worker.grpc.pb.h"
#include "supervisor/process/asio_clock.h"
#include "supervisor/rpc/error_detail.h"

namespace berth::rpc {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

// A generous bound for what must happen; it is only waited out by a test that fails.
constexpr auto kDeadline = 30s;

// Waits for a condition that other threads bring about.
class Flag {
 public:
  void change(const std::function<void()>& what) {
    const std::lock_guard lock(mutex_);
    what();
    changed_.notify_all();
  }
  bool wait(const std::function<bool()>& holds) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, holds);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

// A worker whose answer is a script.
class ScriptedWorker : public v1::Worker::Service {
 public:
  std::function<grpc::Status(grpc::ServerContext&, grpc::ServerWriter<v1::GenerateEvent>&)> answer;

  grpc::Status Control(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::ControlEvent, v1::ControlRequest>* stream) override {
    v1::ControlRequest hello;
    if (!stream->Read(&hello)) return grpc::Status::OK;
    v1::ControlEvent event;
    event.mutable_progress()->set_phase("weights");
    event.mutable_progress()->set_fraction(0.5F);
    stream->Write(event);
    event.mutable_ready()->set_window(4096);
    event.mutable_ready()->set_sequences(hello.hello().protocol());
    event.mutable_ready()->add_memory()->set_domain("host");
    stream->Write(event);
    v1::ControlRequest next;
    while (stream->Read(&next)) {
      if (next.has_cancel_load()) return grpc::Status::OK;
    }
    return context->IsCancelled() ? grpc::Status::CANCELLED : grpc::Status::OK;
  }

  grpc::Status Generate(grpc::ServerContext* context, const v1::GenerateRequest* /*request*/,
                        grpc::ServerWriter<v1::GenerateEvent>* writer) override {
    return answer(*context, *writer);
  }

  // Of the calls with one answer.
  std::function<grpc::Status(grpc::ServerContext&, const v1::EmbedRequest&, v1::EmbedResponse&)>
      embed;

  grpc::Status Embed(grpc::ServerContext* context, const v1::EmbedRequest* request,
                     v1::EmbedResponse* response) override {
    return embed(*context, *request, *response);
  }
  grpc::Status CountTokens(grpc::ServerContext* /*context*/, const v1::TokenizeRequest* request,
                           v1::CountTokensResponse* response) override {
    response->set_tokens(static_cast<std::uint32_t>(request->text().size()));
    response->set_window(4096);
    return grpc::Status::OK;
  }
};

// Keeps the one answer of a call.
template <typename Answer>
class AnswerBox {
 public:
  OnAnswer<Answer> taker() {
    return [this](Result<Answer> got) {
      flag_.change([&] {
        EXPECT_FALSE(answer_) << "a second answer";
        answer_ = std::move(got);
      });
    };
  }
  const Result<Answer>* wait() {
    return flag_.wait([this] { return answer_.has_value(); }) ? &*answer_ : nullptr;
  }

 private:
  Flag flag_;
  std::optional<Result<Answer>> answer_;
};

class Observer : public WorkerObserver {
 public:
  void on_progress(const WorkerProgress& progress) override {
    flag.change([&] { phase = progress.phase; });
  }
  void on_ready(const WorkerReady& worker) override {
    flag.change([&] { ready = worker; });
  }
  void on_load_failed(const WorkerLoadFailed& /*failed*/) override {}
  void on_heartbeat(const WorkerHeartbeat& /*heartbeat*/) override {}
  void on_disconnected() override {
    flag.change([&] { disconnected = true; });
  }

  Flag flag;
  std::string phase;
  std::optional<WorkerReady> ready;
  bool disconnected = false;
};

// Takes `room` events, then says that it is full.
class Sink : public GenerateSink {
 public:
  explicit Sink(std::size_t room = 1'000'000) : room_(room) {}
  bool on_event(core::GenerateEvent event) override {
    bool more = true;
    flag.change([&] {
      events.push_back(std::move(event));
      more = events.size() < room_;
    });
    return more;
  }
  void on_end(Status status) override {
    flag.change([&] { end = std::move(status); });
  }
  bool wait_end() {
    return flag.wait([this] { return end.has_value(); });
  }

  Flag flag;
  std::vector<core::GenerateEvent> events;
  std::optional<Status> end;

 private:
  std::size_t room_;
};

v1::GenerateEvent token(const std::string& text) {
  v1::GenerateEvent event;
  event.mutable_token()->set_text(text);
  return event;
}

v1::GenerateEvent done() {
  v1::GenerateEvent event;
  event.mutable_done()->set_finish_reason("stop");
  return event;
}

class GrpcWorkerClientTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/berth-rpc-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern), nullptr);
    directory_ = pattern;
    socket_ = directory_ + "/w.sock";
    start_server();
    core_ = std::thread([this] { io_.run(); });
  }
  void TearDown() override {
    std::atomic<bool> gone{false};
    clock_.post([&] {
      client_.reset();
      gone = true;
      gone.notify_all();
    });
    gone.wait(false);
    stop_server();
    work_.reset();
    io_.stop();
    core_.join();
    ::unlink(socket_.c_str());
    ::rmdir(directory_.c_str());
  }

  void start_server() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket_, grpc::InsecureServerCredentials());
    builder.RegisterService(&worker_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  // As a worker that is killed: nothing is finished.
  void stop_server() {
    if (server_) server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
  }
  void connect() {
    std::atomic<bool> connected{false};
    clock_.post([&] {
      client_ = connector_.connect(socket_, "instance", observer_);
      connected = true;
      connected.notify_all();
    });
    connected.wait(false);
  }
  std::unique_ptr<GenerateCall> generate(std::shared_ptr<Sink> sink, Duration timeout = kDeadline) {
    core::GenerateRequest request;
    request.model = "demo";
    request.input = core::PromptInput{"x"};
    return client_->generate(request, clock_.now() + timeout, std::move(sink));
  }

  std::string directory_;
  std::string socket_;
  ScriptedWorker worker_;
  std::unique_ptr<grpc::Server> server_;
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      io_.get_executor()};
  process::AsioClock clock_{io_};
  GrpcWorkerConnector connector_{clock_};
  Observer observer_;
  std::unique_ptr<WorkerClient> client_;
  std::thread core_;
};

TEST_F(GrpcWorkerClientTest, TheControlStreamTellsProgressAndReadiness) {
  connect();
  ASSERT_TRUE(observer_.flag.wait([&] { return observer_.ready.has_value(); }));
  EXPECT_EQ(observer_.phase, "weights");
  EXPECT_EQ(observer_.ready->window, 4096U);
  EXPECT_EQ(observer_.ready->sequences, 1U) << "the protocol's version was not sent";
  ASSERT_EQ(observer_.ready->memory.size(), 1U);
}

TEST_F(GrpcWorkerClientTest, L9_AWorkerThatGoesIsNoticed) {
  connect();
  ASSERT_TRUE(observer_.flag.wait([&] { return observer_.ready.has_value(); }));
  stop_server();
  EXPECT_TRUE(observer_.flag.wait([&] { return observer_.disconnected; }));
}

TEST_F(GrpcWorkerClientTest, CancelLoadReachesTheWorker) {
  connect();
  ASSERT_TRUE(observer_.flag.wait([&] { return observer_.ready.has_value(); }));
  clock_.post([&] { client_->cancel_load(); });
  EXPECT_TRUE(observer_.flag.wait([&] { return observer_.disconnected; }));
}

TEST_F(GrpcWorkerClientTest, AnAnswerComesWholeAndInOrder) {
  worker_.answer = [](grpc::ServerContext&, grpc::ServerWriter<v1::GenerateEvent>& writer) {
    for (int i = 0; i < 100; ++i) writer.Write(token(std::to_string(i)));
    writer.Write(done());
    return grpc::Status::OK;
  };
  connect();
  const auto sink = std::make_shared<Sink>();
  const auto call = generate(sink);
  ASSERT_TRUE(sink->wait_end());
  EXPECT_TRUE(*sink->end);
  ASSERT_EQ(sink->events.size(), 101U);
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(std::get<core::TokenEvent>(sink->events[i]).text, std::to_string(i));
  }
  EXPECT_EQ(std::get<core::DoneEvent>(sink->events.back()).finish_reason, "stop");
}

TEST_F(GrpcWorkerClientTest, AFullSinkStopsTheReads) {
  std::atomic<int> written{0};
  worker_.answer = [&](grpc::ServerContext&, grpc::ServerWriter<v1::GenerateEvent>& writer) {
    const std::string big(64 << 10, 'x');
    for (int i = 0; i < 200; ++i) {
      if (!writer.Write(token(big))) return grpc::Status::CANCELLED;
      ++written;
    }
    writer.Write(done());
    return grpc::Status::OK;
  };
  connect();
  const auto sink = std::make_shared<Sink>(3);
  const auto call = generate(sink);
  ASSERT_TRUE(sink->flag.wait([&] { return sink->events.size() == 3; }));
  EXPECT_FALSE(sink->end);
  EXPECT_LT(written, 200) << "12.5 MiB were taken although nobody read them";
  // Each resume takes one more, since the sink stays full.
  while (sink->events.size() < 201) {
    const std::size_t before = sink->events.size();
    call->resume();
    ASSERT_TRUE(sink->flag.wait([&] { return sink->events.size() > before; }));
  }
  call->resume();
  ASSERT_TRUE(sink->wait_end());
  EXPECT_TRUE(*sink->end);
}

TEST_F(GrpcWorkerClientTest, T31_CancelReachesTheWorkerEvenWhilePaused) {
  Flag flag;
  bool cancelled = false;
  worker_.answer = [&](grpc::ServerContext& context,
                       grpc::ServerWriter<v1::GenerateEvent>& writer) {
    while (writer.Write(token("x")) && !context.IsCancelled()) {
    }
    flag.change([&] { cancelled = true; });
    return grpc::Status::CANCELLED;
  };
  connect();
  const auto sink = std::make_shared<Sink>(1);
  const auto call = generate(sink);
  ASSERT_TRUE(sink->flag.wait([&] { return sink->events.size() == 1; }));
  call->cancel();
  EXPECT_TRUE(flag.wait([&] { return cancelled; }));
  ASSERT_TRUE(sink->wait_end());
  EXPECT_FALSE(*sink->end);
}

TEST_F(GrpcWorkerClientTest, DroppingTheCallCancelsIt) {
  // It may outlive this body, or never be called: the call is dropped at once.
  worker_.answer = [](grpc::ServerContext& context, grpc::ServerWriter<v1::GenerateEvent>& writer) {
    while (writer.Write(token("x")) && !context.IsCancelled()) {
    }
    return grpc::Status::CANCELLED;
  };
  connect();
  const auto sink = std::make_shared<Sink>();
  generate(sink).reset();
  ASSERT_TRUE(sink->wait_end());
}

TEST_F(GrpcWorkerClientTest, L9_ABrokenStreamIsAWorkerThatDied) {
  Flag flag;
  bool running = false;
  worker_.answer = [&](grpc::ServerContext& context,
                       grpc::ServerWriter<v1::GenerateEvent>& writer) {
    writer.Write(token("x"));
    flag.change([&] { running = true; });
    while (!context.IsCancelled()) std::this_thread::yield();
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone");
  };
  connect();
  const auto sink = std::make_shared<Sink>();
  const auto call = generate(sink);
  ASSERT_TRUE(flag.wait([&] { return running; }));
  stop_server();
  ASSERT_TRUE(sink->wait_end());
  ASSERT_FALSE(*sink->end);
  EXPECT_NE(sink->end->error().reason, Reason::kInvalidArgument);
}

TEST_F(GrpcWorkerClientTest, ATypedErrorComesThrough) {
  worker_.answer = [](grpc::ServerContext& context, grpc::ServerWriter<v1::GenerateEvent>&) {
    ErrorExtras extras;
    extras.needed = 9000;
    extras.limit = 4096;
    const Error error(Reason::kWindowExceeded, "too long", extras);
    context.AddTrailingMetadata(kErrorTrailer,
                                to_proto(error, "", Audience::kAdmin).SerializeAsString());
    return to_status(error);
  };
  connect();
  const auto sink = std::make_shared<Sink>();
  const auto call = generate(sink);
  ASSERT_TRUE(sink->wait_end());
  ASSERT_FALSE(*sink->end);
  EXPECT_EQ(sink->end->error().reason, Reason::kWindowExceeded);
  EXPECT_EQ(sink->end->error().extras->needed, 9000U);
}

TEST_F(GrpcWorkerClientTest, ADeadlineEndsTheCall) {
  worker_.answer = [](grpc::ServerContext& context, grpc::ServerWriter<v1::GenerateEvent>&) {
    while (!context.IsCancelled()) std::this_thread::yield();
    return grpc::Status::CANCELLED;
  };
  connect();
  const auto sink = std::make_shared<Sink>();
  const auto call = generate(sink, 20ms);
  ASSERT_TRUE(sink->wait_end());
  ASSERT_FALSE(*sink->end);
  EXPECT_EQ(sink->end->error().reason, Reason::kDeadline);
}

TEST_F(GrpcWorkerClientTest, AnAnswerWithoutAnEndIsAnError) {
  worker_.answer = [](grpc::ServerContext&, grpc::ServerWriter<v1::GenerateEvent>& writer) {
    writer.Write(token("x"));
    return grpc::Status::OK;
  };
  connect();
  const auto sink = std::make_shared<Sink>();
  const auto call = generate(sink);
  ASSERT_TRUE(sink->wait_end());
  ASSERT_FALSE(*sink->end);
  EXPECT_EQ(sink->end->error().reason, Reason::kInternal);
}

TEST_F(GrpcWorkerClientTest, ACallWithOneAnswerBringsIt) {
  worker_.embed = [](grpc::ServerContext&, const v1::EmbedRequest& request,
                     v1::EmbedResponse& response) {
    EXPECT_FALSE(request.normalize());
    for (const v1::EmbedInput& input : request.inputs()) {
      v1::Embedding& to = *response.add_embeddings();
      to.add_values(static_cast<float>(input.text().size()));
      to.set_tokens(7);
    }
    response.set_prompt_tokens(14);
    return grpc::Status::OK;
  };
  connect();
  core::EmbedRequest request;
  request.inputs = {core::PromptInput{"a"}, core::PromptInput{"abc"}};
  request.normalize = false;
  AnswerBox<core::Embeddings> box;
  const auto call = client_->embed(request, clock_.now() + kDeadline, box.taker());
  const Result<core::Embeddings>* answer = box.wait();
  ASSERT_TRUE(answer != nullptr && *answer);
  ASSERT_EQ((*answer)->embeddings.size(), 2U);
  EXPECT_EQ((*answer)->embeddings[1].values, std::vector<float>{3});
  EXPECT_EQ((*answer)->prompt_tokens, 14U);

  core::TokenizeRequest text;
  text.input = core::TextInput{"four"};
  AnswerBox<core::TokenCount> count;
  const auto counting = client_->count_tokens(text, clock_.now() + kDeadline, count.taker());
  const Result<core::TokenCount>* counted = count.wait();
  ASSERT_TRUE(counted != nullptr && *counted);
  EXPECT_EQ((*counted)->tokens, 4U);
  EXPECT_EQ((*counted)->window, 4096U);
}

TEST_F(GrpcWorkerClientTest, AnErrorOfOneAnswerKeepsItsDetail) {
  worker_.embed = [](grpc::ServerContext& context, const v1::EmbedRequest&, v1::EmbedResponse&) {
    const auto error = invalid_argument("inputs[0]", "inputs[0] is empty.").value();
    context.AddTrailingMetadata(kErrorTrailer, to_trailer(to_proto(error, {}, Audience::kAdmin)));
    return to_status(error);
  };
  connect();
  AnswerBox<core::Embeddings> box;
  const auto call = client_->embed({}, clock_.now() + kDeadline, box.taker());
  const Result<core::Embeddings>* answer = box.wait();
  ASSERT_TRUE(answer != nullptr && !*answer);
  EXPECT_EQ(answer->error().reason, Reason::kInvalidArgument);
  ASSERT_TRUE(answer->error().extras);
  EXPECT_EQ(answer->error().extras->param, "inputs[0]");
}

TEST_F(GrpcWorkerClientTest, T31_CancellingEndsACallWithOneAnswer) {
  // The second call may still run there when this test has ended.
  struct Seen {
    std::atomic<bool> began{false};
    std::atomic<bool> noticed{false};
  };
  const auto seen = std::make_shared<Seen>();
  worker_.embed = [seen](grpc::ServerContext& context, const v1::EmbedRequest&,
                         v1::EmbedResponse&) {
    seen->began = true;
    seen->began.notify_all();
    while (!context.IsCancelled()) std::this_thread::yield();
    seen->noticed = true;
    seen->noticed.notify_all();
    return grpc::Status::CANCELLED;
  };
  connect();
  AnswerBox<core::Embeddings> box;
  auto call = client_->embed({}, clock_.now() + kDeadline, box.taker());
  seen->began.wait(false);
  call.reset();  // as a cancel()
  const Result<core::Embeddings>* answer = box.wait();
  ASSERT_NE(answer, nullptr);
  EXPECT_FALSE(*answer);
  seen->noticed.wait(false);

  AnswerBox<core::Embeddings> late;
  const auto limited = client_->embed({}, clock_.now() + 50ms, late.taker());
  const Result<core::Embeddings>* passed = late.wait();
  ASSERT_TRUE(passed != nullptr && !*passed);
  EXPECT_EQ(passed->error().reason, Reason::kDeadline);
}

}  // namespace
}  // namespace berth::rpc
