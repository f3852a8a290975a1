// Many clients of one worker at once, which do what clients do at any moment. The thread sanitizer
// watches it in its build; what it reports makes the worker's exit status differ from 0.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/fake_engine/fake_engine.h"
#include "tests/integration/worker/worker_process.h"

namespace berth::worker {
namespace {

constexpr int kClients = 64;
constexpr int kTurns = 8;
constexpr std::uint64_t kModelSeed = 5;

// More work than lanes, cells or one batch have room for.
constexpr const char* kModel =
    "# berth fake model\n"
    "seed = 5\n"
    "shares_cells = true\n"
    "prompt_speed = 40000\n"
    "generation_speed = 4000\n"
    "draft_tokens = 3\n"
    "draft_right_percent = 60\n"
    "chat_template = {% for m in messages %}{{ m.content }}{% endfor %}\n";

std::string answer_to(const std::string& text) {
  std::vector<TokenId> tokens;
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return FakeEngine::answer_to(std::move(tokens), kModelSeed);
}

// How often which end was met.
struct Tally {
  std::atomic<int> calls{0};
  std::atomic<int> whole{0};
  std::atomic<int> cancelled{0};
  std::atomic<int> late{0};
  std::atomic<int> unavailable{0};
};

// One client with a randomness of its own. Its thread.
class Client {
 public:
  Client(WorkerProcess& worker, Tally& tally, int number)
      : worker_(worker), tally_(tally), number_(number), random_(static_cast<unsigned>(number)) {}

  void turn(int turn) {
    ++tally_.calls;
    // A half of the texts begin as those of others do.
    text_ = std::string(below(2) == 0 ? "Everybody begins like this. " : "") + "Client " +
            std::to_string(number_) + " says for the " + std::to_string(turn) +
            ". time: " + std::string(below(200), 'x');
    switch (below(8)) {
      case 0:
      case 1:
        return generate(greedy_prompt(text_), Leaving::kNever);
      case 2:
        return generate(greedy_chat(text_), Leaving::kNever);
      case 3:
        return generate(greedy_prompt(text_), Leaving::kAfterEvents);
      case 4:
        return generate(greedy_chat(text_), Leaving::kAfterEvents);
      case 5:
        return generate(below(2) == 0 ? greedy_prompt(text_) : greedy_chat(text_),
                        Leaving::kAtADeadline);
      case 6:
        return ask_vocabulary();
      default:
        return read_late();
    }
  }
  [[nodiscard]] bool gone() const { return gone_; }

 private:
  enum class Leaving { kNever, kAfterEvents, kAtADeadline };

  std::size_t below(std::size_t bound) { return random_() % bound; }

  void generate(v1::GenerateRequest request, Leaving leaving) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    auto events_left = below(12);
    if (leaving == Leaving::kAtADeadline) {
      const auto time = 1 + below(30);
      if (below(2) == 0) {
        request.set_deadline_ms(time);
      } else {
        context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(time));
      }
    }
    const auto stream = worker_.stub().Generate(&context, request);
    std::string text;
    v1::GenerateEvent event;
    while (true) {
      if (leaving == Leaving::kAfterEvents && events_left-- == 0) context.TryCancel();
      if (!stream->Read(&event)) break;
      text += event.token().text();
    }
    end(stream->Finish(), text, leaving != Leaving::kNever);
  }

  // Asks for answers and lets them wait while it does something else.
  void read_late() {
    std::array<grpc::ClientContext, 3> contexts;
    std::vector<std::unique_ptr<grpc::ClientReader<v1::GenerateEvent>>> streams;
    auto request = greedy_prompt(text_);
    request.set_top_logprobs(20);
    for (auto& context : contexts) {
      context.set_deadline(std::chrono::system_clock::now() + kPatience);
      streams.push_back(worker_.stub().Generate(&context, request));
    }
    ask_vocabulary();
    contexts[1].TryCancel();
    tally_.calls += static_cast<int>(streams.size());
    for (std::size_t i = 0; i < streams.size(); ++i) {
      std::string text;
      v1::GenerateEvent event;
      while (streams[i]->Read(&event)) text += event.token().text();
      end(streams[i]->Finish(), text, i == 1);
    }
  }

  void ask_vocabulary() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    v1::TokenizeRequest request;
    if (below(2) == 0) {
      request.set_text(text_);
    } else {
      *request.mutable_chat() = greedy_chat(text_).chat();
    }
    v1::CountTokensResponse response;
    const auto status = worker_.stub().CountTokens(&context, request, &response);
    if (status.ok()) {
      ++tally_.whole;
      EXPECT_EQ(response.tokens(), text_.size());
    } else {
      count_loss(status, false);
    }
  }

  void end(const grpc::Status& status, const std::string& text, bool may_leave) {
    if (status.ok()) {
      ++tally_.whole;
      EXPECT_EQ(text, answer_to(text_));
    } else {
      count_loss(status, may_leave);
    }
  }

  void count_loss(const grpc::Status& status, bool may_leave) {
    switch (status.error_code()) {
      case grpc::StatusCode::CANCELLED:
        ++tally_.cancelled;
        break;
      case grpc::StatusCode::DEADLINE_EXCEEDED:
        ++tally_.late;
        break;
      case grpc::StatusCode::UNAVAILABLE:
        ++tally_.unavailable;
        gone_ = true;
        return;
      default:
        ADD_FAILURE() << status.error_code() << ": " << status.error_message();
    }
    EXPECT_TRUE(may_leave) << status.error_code() << ": " << status.error_message();
  }

  WorkerProcess& worker_;
  Tally& tally_;
  const int number_;
  std::mt19937 random_;
  std::string text_;
  bool gone_ = false;
};

class Crowd : public testing::Test {
 protected:
  Crowd() {
    std::string pattern = "/tmp/berth-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    const auto model = directory_ + "/model";
    std::ofstream(model) << kModel;
    worker_ = std::make_unique<WorkerProcess>(
        WorkerProcess::Setup{model, {"--context", "1024", "--sequences", "6", "--batch", "64"}});
    const auto loaded = worker_->wait_loaded();
    EXPECT_TRUE(loaded && loaded->has_ready()) << worker_->log();
  }
  ~Crowd() override { std::filesystem::remove_all(directory_); }

  // `on_calls` hears the number of calls so far, on the clients' threads.
  template <typename OnCalls>
  void run(OnCalls on_calls) {
    std::vector<std::thread> threads;
    for (int number = 0; number < kClients; ++number) {
      threads.emplace_back([this, number, &on_calls] {
        Client client(*worker_, tally_, number);
        for (int turn = 0; turn < kTurns && !client.gone(); ++turn) {
          client.turn(turn);
          on_calls(tally_.calls.load());
        }
      });
    }
    for (auto& thread : threads) thread.join();
  }

  std::string directory_;
  std::unique_ptr<WorkerProcess> worker_;
  Tally tally_;
};

TEST_F(Crowd, EveryClientGetsItsOwnAnswer) {
  run([](int) {});
  EXPECT_GE(tally_.calls, kClients * kTurns);
  EXPECT_GT(tally_.whole, 0);
  EXPECT_GT(tally_.cancelled, 0);
  EXPECT_EQ(tally_.unavailable, 0) << worker_->log();

  v1::ControlRequest drain;
  drain.mutable_drain();
  worker_->send(drain);
  bool drained = false;
  while (!drained) {
    const auto event = worker_->next_event();
    ASSERT_TRUE(event.has_value()) << worker_->log();
    drained = event->has_drained();
  }
  worker_->signal(SIGTERM);
  EXPECT_EQ(worker_->wait_exit().code, 0) << worker_->log();
}

TEST_F(Crowd, L4_EveryClientHearsOfTheEnd) {
  std::atomic<bool> told{false};
  run([&](int calls) {
    if (calls > kClients * 2 && !told.exchange(true)) worker_->signal(SIGTERM);
  });
  EXPECT_TRUE(told);
  EXPECT_GT(tally_.unavailable, 0);
  EXPECT_EQ(worker_->wait_exit().code, 0) << worker_->log();
}

}  // namespace
}  // namespace berth::worker
