#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/worker/worker_process.h"

namespace berth::worker {
namespace {

using testing::HasSubstr;

v1::ControlEvent ready(WorkerProcess& worker) {
  const auto event = worker.wait_loaded();
  EXPECT_TRUE(event && event->has_ready()) << worker.log();
  return event.value_or(v1::ControlEvent());
}

// A generation that goes on until the window is full.
v1::GenerateRequest endless() {
  auto request = greedy_prompt("Once upon a time");
  request.mutable_sampling()->set_temperature(20);
  request.mutable_sampling()->set_top_k(0);
  request.mutable_sampling()->set_top_p(1);
  request.mutable_sampling()->set_seed(7);
  return request;
}

TEST(Life, L4_EndOfStdinEndsTheWorker) {
  WorkerProcess worker({tinychat(), {"--context", "512"}});
  ready(worker);
  worker.close_stdin();
  EXPECT_EQ(worker.wait_exit().code, 0);
  EXPECT_FALSE(std::filesystem::exists(worker.socket()));
}

TEST(Life, SigtermEndsAnIdleWorker) {
  WorkerProcess worker({tinychat(), {"--context", "512"}});
  ready(worker);
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait_exit().code, 0);
  EXPECT_FALSE(std::filesystem::exists(worker.socket()));
}

TEST(Life, SigtermEndsAStreamWithAReason) {
  WorkerProcess worker({tinychat(), {"--context", "8192"}});
  ready(worker);
  bool sent = false;
  const auto outcome = worker.generate(endless(), [&](const auto& event, auto& /*context*/) {
    if (event.has_token() && !sent) worker.signal(SIGTERM);
    sent = sent || event.has_token();
  });
  EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  ASSERT_TRUE(outcome.error.has_value()) << outcome.status.error_message();
  EXPECT_EQ(outcome.error->reason(), "shutting_down");
  EXPECT_EQ(worker.wait_exit().code, 0);
}

TEST(Life, DrainFinishesWhatRunsAndRefusesMore) {
  WorkerProcess worker({tinychat(), {"--context", "4096"}});
  ready(worker);
  v1::ControlRequest drain;
  drain.mutable_drain();
  bool sent = false;
  const auto outcome = worker.generate(endless(), [&](const auto& event, auto& /*context*/) {
    if (event.has_token() && !sent) worker.send(drain);
    sent = sent || event.has_token();
  });
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.error_message();
  bool drained = false;
  while (const auto event = worker.next_event()) {
    drained = event->has_drained();
    if (drained) break;
  }
  EXPECT_TRUE(drained);
  const auto refused = worker.generate(greedy_prompt("x"));
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  ASSERT_TRUE(refused.error.has_value());
  EXPECT_EQ(refused.error->reason(), "draining");
}

TEST(Life, L9_HeartbeatsTellOfWork) {
  WorkerProcess worker({tinychat(), {"--context", "8192"}});
  ready(worker);
  std::thread client([&] { worker.generate(endless()); });
  bool active = false;
  std::uint64_t progress = 0;
  while (const auto event = worker.next_event()) {
    if (!event->has_heartbeat()) continue;
    EXPECT_GE(event->heartbeat().progress(), progress);
    progress = event->heartbeat().progress();
    if (active && event->heartbeat().active() == 0) break;
    active = active || event->heartbeat().active() == 1;
  }
  client.join();
  EXPECT_TRUE(active);
  EXPECT_GT(progress, 0U);
}

// What a client does not read is not computed: else log probabilities would fill the memory. And
// the worker that waits for the client is not stuck.
TEST(Life, L9_AClientThatDoesNotReadPausesItsGenerationAndTheProgressGoesOn) {
  WorkerProcess worker({tinychat(), {"--context", "8192"}});
  ready(worker);
  auto request = endless();
  request.set_top_logprobs(20);
  request.set_max_tokens(2000);  // about twice what fits into all buffers on the way
  request.mutable_sampling()->set_ignore_eos(true);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // else the client's own buffer grows to megabytes
  const auto stub = v1::Worker::NewStub(grpc::CreateCustomChannel(
      "unix:" + worker.socket(), grpc::InsecureChannelCredentials(), arguments));
  const auto reader = stub->Generate(&context, request);

  // Three times in a row paused, and further each time: gRPC's buffers may take a little more.
  constexpr int kBeats = 3;
  const auto bound = std::chrono::steady_clock::now() + kPatience;
  bool active = false;
  int paused = 0;
  std::uint64_t progress = 0;
  while (paused < kBeats) {
    ASSERT_LT(std::chrono::steady_clock::now(), bound) << "it never pauses";
    const auto event = worker.next_event();
    ASSERT_TRUE(event.has_value());
    if (!event->has_heartbeat()) continue;
    const auto& beat = event->heartbeat();
    ASSERT_FALSE(active && beat.active() == 0) << "it was computed to its end";
    EXPECT_LE(beat.paused(), beat.active());
    paused = beat.paused() == 1 && beat.progress() > progress ? paused + 1 : 0;
    active = beat.active() == 1;
    progress = beat.progress();
  }

  int tokens = 0;
  int logprobs = 0;
  v1::GenerateEvent event;
  while (reader->Read(&event)) {
    tokens += event.token().ids_size();
    logprobs += event.token().logprobs_size();
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_TRUE(event.has_done());
  EXPECT_GT(tokens, 1900);  // but for those that became no text
  EXPECT_EQ(logprobs, tokens);
}

// More clients than lanes, some of which go away at any moment.
TEST(Life, CrowdIsServed) {
  WorkerProcess worker({tinychat(), {"--context", "1024", "--sequences", "3"}});
  ready(worker);
  std::vector<std::thread> clients;
  for (int client = 0; client < 8; ++client) {
    clients.emplace_back([&worker, client] {
      for (int turn = 0; turn < 8; ++turn) {
        auto request = greedy_prompt("Client " + std::to_string(client));
        request.set_max_tokens(12);
        int events = 0;
        const bool leaves = (client + turn) % 3 == 0;
        const auto outcome = worker.generate(request, [&](const auto& /*event*/, auto& context) {
          if (leaves && ++events > turn) context.TryCancel();
        });
        if (leaves && !outcome.status.ok()) {
          EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::CANCELLED);
        } else {
          EXPECT_TRUE(outcome.status.ok()) << outcome.status.error_message();
        }
      }
    });
  }
  for (auto& client : clients) client.join();
  v1::ControlRequest drain;
  drain.mutable_drain();
  worker.send(drain);
  bool drained = false;
  while (const auto event = worker.next_event()) {
    drained = event->has_drained();
    if (drained) break;
  }
  EXPECT_TRUE(drained);
}

TEST(Life, ControlChecksTheGreeting) {
  WorkerProcess worker(
      {tinychat(), {"--context", "512", "--instance", "0190b1a0-0000-7000-8000-000000000001"}});
  ASSERT_TRUE(worker.wait_listening());
  const auto ending = [&worker](std::uint32_t protocol, const std::string& instance) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    const auto stream = worker.stub().Control(&context);
    v1::ControlRequest request;
    request.mutable_hello()->set_protocol(protocol);
    request.mutable_hello()->set_instance_id(instance);
    stream->Write(request);
    v1::ControlEvent event;
    while (stream->Read(&event)) {
    }
    return stream->Finish();
  };
  const auto version = ending(2, "0190b1a0-0000-7000-8000-000000000001");
  EXPECT_EQ(version.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(version.error_message(), HasSubstr("protocol 2"));
  const auto instance = ending(1, "0190b1a0-0000-7000-8000-000000000002");
  EXPECT_EQ(instance.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST(Life, OneControlStreamAtATime) {
  WorkerProcess worker({tinychat(), {"--context", "512"}});
  ready(worker);
  grpc::ClientContext context;
  const auto second = worker.stub().Control(&context);
  v1::ControlEvent event;
  EXPECT_FALSE(second->Read(&event));
  EXPECT_EQ(second->Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST(Life, SecondWorkerOnTheSameSocketIsRefused) {
  WorkerProcess first({tinychat(), {"--context", "512"}});
  ready(first);
  WorkerProcess second({tinychat(), {"--context", "512"}, first.socket()});
  EXPECT_FALSE(second.wait_listening());
  EXPECT_EQ(second.wait_exit().code, 1);
  EXPECT_THAT(second.log(), HasSubstr("Another process listens on " + first.socket()));
  EXPECT_TRUE(first.generate(greedy_chat("Hello")).status.ok());
}

TEST(Life, SocketPathThatIsTooLongIsWrongUse) {
  WorkerProcess worker({tinychat(), {}, "/tmp/" + std::string(120, 'x')});
  EXPECT_EQ(worker.wait_exit().code, 2);
  EXPECT_THAT(worker.log(), HasSubstr("at most 107"));
}

TEST(Life, WrongUseIsExplained) {
  WorkerProcess worker({tinychat(), {"--sequence", "2"}});
  EXPECT_EQ(worker.wait_exit().code, 2);
  EXPECT_THAT(worker.log(), HasSubstr("berth-worker: cannot start: "));
  EXPECT_THAT(worker.log(), HasSubstr("--sequences"));
}

TEST(Life, L7_TemplateThatIsNoFileOfTemplateSizeIsATypedFailure) {
  std::string pattern = "/tmp/berth-XXXXXX";
  const std::string directory = ::mkdtemp(pattern.data());
  const auto fifo = directory + "/fifo";
  const auto longer = directory + "/longer";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::ofstream(longer) << std::string((256U << 10U) + 1, 'x');
  for (const auto& path : {fifo, longer, directory, std::string("/dev/zero")}) {
    WorkerProcess worker({tinychat(), {"--chat-template", path}});
    const auto loaded = worker.wait_loaded();
    ASSERT_TRUE(loaded && loaded->has_load_failed()) << worker.log();
    EXPECT_EQ(loaded->load_failed().class_(), "unclassified");
    EXPECT_THAT(loaded->load_failed().reason(), HasSubstr("--chat-template " + path));
    EXPECT_EQ(worker.wait_exit().code, 1) << path;
    EXPECT_THAT(worker.log(), HasSubstr("--chat-template " + path));
  }
  std::filesystem::remove_all(directory);
}

TEST(Life, FullDiskForTheLogIsNoReasonToStop) {
  WorkerProcess worker({tinychat(), {"--context", "512"}, "", "/dev/full"});
  ready(worker);
  EXPECT_TRUE(worker.generate(greedy_chat("Hello")).status.ok());
}

TEST(Life, L26_LimitsItself) {
  WorkerProcess worker({tinychat(), {"--context", "512"}});
  ready(worker);
  const auto proc = "/proc/" + std::to_string(worker.pid());
  std::ifstream limits(proc + "/limits");
  const std::string all_limits{std::istreambuf_iterator<char>(limits), {}};
  EXPECT_THAT(all_limits, testing::ContainsRegex("Max core file size +0 +0"));
  std::ifstream status(proc + "/status");
  const std::string all_status{std::istreambuf_iterator<char>(status), {}};
  EXPECT_THAT(all_status, HasSubstr("NoNewPrivs:\t1"));
  EXPECT_THAT(all_status, HasSubstr("Umask:\t0077"));
  struct stat socket {};
  ASSERT_EQ(::stat(worker.socket().c_str(), &socket), 0);
  EXPECT_EQ(socket.st_mode & 0077U, 0U);
}

// A template that is never done with a certain message.
class StuckTemplate : public testing::Test {
 protected:
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::GenerateEvent>> reader;
  };

  StuckTemplate() {
    std::string pattern = "/tmp/berth-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    const auto path = directory_ + "/template";
    std::ofstream(path) << "{% if messages[0].content == 'stuck' %}"
                           "{% for a in range(1000) %}{% for b in range(1000) %}"
                           "{% for c in range(1000) %}{% for d in range(1000) %}"
                           "{% endfor %}{% endfor %}{% endfor %}{% endfor %}{% endif %}x";
    worker_ = std::make_unique<WorkerProcess>(
        WorkerProcess::Setup{tinychat(), {"--context", "512", "--chat-template", path}});
    ready(*worker_);
  }
  ~StuckTemplate() override { std::filesystem::remove_all(directory_); }

  // How a request ends that waits for the template for a moment only.
  std::string probe() {
    auto request = greedy_chat("stuck");
    request.set_deadline_ms(1);
    const auto outcome = worker_->generate(request);
    return outcome.error ? outcome.error->reason() : outcome.status.error_message();
  }
  // Until a probe ends so.
  bool wait_for(const std::string& reason) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < end) {
      if (probe() == reason) return true;
    }
    return false;
  }
  void call() {
    auto& call = *calls_.emplace_back(std::make_unique<Call>());
    call.context.set_deadline(std::chrono::system_clock::now() + kPatience);
    call.reader = worker_->stub().Generate(&call.context, greedy_chat("stuck"));
  }
  // As many requests as may wait, and the one that is being rendered. A probe may take the place of
  // one of them for a moment.
  void fill() {
    for (int i = 0; i < 1281; ++i) call();
    while (probe() != "queue_full") {
      ASSERT_LT(calls_.size(), 2000U);
      call();
    }
  }

  std::string directory_;
  std::unique_ptr<WorkerProcess> worker_;
  std::vector<std::unique_ptr<Call>> calls_;
};

TEST_F(StuckTemplate, DeadlinesHoldAndPromptsDoNotWait) {
  EXPECT_EQ(probe(), "deadline");  // of the one that is being rendered
  EXPECT_EQ(probe(), "deadline");  // of one that waits
  auto request = greedy_prompt("Once upon a time");
  request.set_max_tokens(2);
  EXPECT_TRUE(worker_->generate(request).status.ok());
}

TEST_F(StuckTemplate, CancelledRequestsLeaveTheQueue) {
  fill();
  for (const auto& call : calls_) call->context.TryCancel();
  EXPECT_TRUE(wait_for("deadline"));
  for (const auto& call : calls_) {
    v1::GenerateEvent event;
    while (call->reader->Read(&event)) {
    }
    call->reader->Finish();
  }
}

TEST_F(StuckTemplate, SigtermEndsWhatWaitsWithAReason) {
  fill();
  worker_->signal(SIGTERM);
  int told = 0;
  for (const auto& call : calls_) {
    v1::GenerateEvent event;
    while (call->reader->Read(&event)) {
      if (event.error().reason() == "shutting_down") ++told;
    }
    call->reader->Finish();
  }
  EXPECT_GT(told, 0);
  EXPECT_EQ(worker_->wait_exit().code, 0);
}

// A load that never ends: libllama waits for somebody who writes to a FIFO.
class EndlessLoad : public testing::Test {
 protected:
  EndlessLoad() {
    std::string pattern = "/tmp/berth-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    fifo_ = directory_ + "/model.gguf";
    EXPECT_EQ(::mkfifo(fifo_.c_str(), 0600), 0);
  }
  ~EndlessLoad() override { std::filesystem::remove_all(directory_); }

  std::string directory_;
  std::string fifo_;
};

TEST_F(EndlessLoad, GenerateIsRefusedBeforeReady) {
  WorkerProcess worker({fifo_, {}});
  ASSERT_TRUE(worker.wait_listening());
  const auto outcome = worker.generate(greedy_prompt("x"));
  EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  ASSERT_TRUE(outcome.error.has_value());
  EXPECT_EQ(outcome.error->reason(), "conflict");
}

TEST_F(EndlessLoad, EveryOtherCallIsRefusedBeforeReady) {
  WorkerProcess worker({fifo_, {}});
  ASSERT_TRUE(worker.wait_listening());
  const auto refused = [](const std::function<grpc::Status(grpc::ClientContext&)>& call) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    const auto status = call(context);
    const auto& trailers = context.GetServerTrailingMetadata();
    const auto trailer = trailers.find("berth-error-bin");
    v1::ErrorDetail detail;
    return status.error_code() == grpc::StatusCode::FAILED_PRECONDITION &&
           trailer != trailers.end() &&
           detail.ParseFromArray(trailer->second.data(),
                                 static_cast<int>(trailer->second.size())) &&
           detail.reason() == "conflict";
  };
  auto& stub = worker.stub();
  EXPECT_TRUE(refused([&](auto& context) {
    v1::EmbedResponse response;
    return stub.Embed(&context, {}, &response);
  }));
  EXPECT_TRUE(refused([&](auto& context) {
    v1::TokenizeResponse response;
    return stub.Tokenize(&context, {}, &response);
  }));
  EXPECT_TRUE(refused([&](auto& context) {
    v1::DetokenizeResponse response;
    return stub.Detokenize(&context, {}, &response);
  }));
  EXPECT_TRUE(refused([&](auto& context) {
    v1::CountTokensResponse response;
    return stub.CountTokens(&context, {}, &response);
  }));
}

TEST_F(EndlessLoad, CancelLoadEndsTheProcess) {
  WorkerProcess worker({fifo_, {}});
  ASSERT_TRUE(worker.wait_listening());
  ASSERT_TRUE(worker.next_event().has_value());
  v1::ControlRequest request;
  request.mutable_cancel_load();
  worker.send(request);
  EXPECT_EQ(worker.wait_exit().code, 0);
}

TEST_F(EndlessLoad, L4_EndOfStdinEndsALoadingWorker) {
  WorkerProcess worker({fifo_, {}});
  ASSERT_TRUE(worker.wait_listening());
  worker.close_stdin();
  EXPECT_EQ(worker.wait_exit().code, 0);
}

TEST_F(EndlessLoad, SigtermEndsALoadingWorker) {
  WorkerProcess worker({fifo_, {}});
  ASSERT_TRUE(worker.wait_listening());
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait_exit().code, 0);
  EXPECT_FALSE(std::filesystem::exists(worker.socket()));
}

}  // namespace
}  // namespace berth::worker
