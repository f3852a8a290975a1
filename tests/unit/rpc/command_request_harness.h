#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "supervisor/rpc/command_client.h"
#include "tests/simulation/sim_clock.h"

namespace berth::rpc {

struct NoObserver : WorkerObserver {
  void on_progress(const WorkerProgress& /*progress*/) override {}
  void on_ready(const WorkerReady& /*said*/) override { ready = true; }
  void on_load_failed(const WorkerLoadFailed& /*said*/) override {}
  void on_heartbeat(const WorkerHeartbeat& /*heartbeat*/) override {}
  void on_disconnected() override {}
  bool ready = false;
};

// What the test sees of the one connection, and answers over it.
struct Wire {
  std::string path;
  std::string body;
  CommandStreamSink* sink = nullptr;  // null: no connection
  bool room = true;
  int resumed = 0;

  void head(unsigned int status, const std::string& type) { sink->on_head({status, type, {}, {}}); }
  // Returns whether it was passed on; a connection that is gone takes nothing.
  bool piece(const std::string& text) {
    if (sink == nullptr || !room) return false;
    room = sink->on_piece(text);
    return true;
  }
  void end(const Status& status) {
    if (CommandStreamSink* const told = std::exchange(sink, nullptr)) told->on_end(status);
  }
};

class WireStream : public CommandStream {
 public:
  explicit WireStream(Wire& wire) : wire_(wire), sink_(wire.sink) {}
  WireStream(const WireStream&) = delete;
  WireStream& operator=(const WireStream&) = delete;
  ~WireStream() override {
    if (wire_.sink == sink_) wire_.sink = nullptr;
  }
  void resume() override {
    wire_.room = true;
    ++wire_.resumed;
  }

 private:
  Wire& wire_;
  const CommandStreamSink* const sink_;
};

// A program that is ready at once.
class ReadyPeer : public CommandPeer {
 public:
  ReadyPeer(Clock& clock, Wire& wire) : clock_(clock), wire_(wire) {}
  Timer look(std::function<void(CommandListener)> done) override {
    return clock_.sleep_for(std::chrono::milliseconds(1), [done = std::move(done)] {
      done({CommandListener::Who::kChild, ""});
    });
  }
  Timer call(const CommandRequest& request,
             std::function<void(Result<CommandAnswer>)> done) override {
    const std::string body = request.path == "/v1/models" ? R"({"data":[{"id":"their \"name\""}]})"
                                                          : R"({"choices":[{"text":"a"}]})";
    return clock_.sleep_for(std::chrono::milliseconds(1), [done = std::move(done), body] {
      done(CommandAnswer{200, body});
    });
  }
  std::unique_ptr<CommandStream> post(CommandPost post, CommandStreamSink& sink) override {
    wire_.path = post.path;
    wire_.body.clear();
    for (const std::string& part : post.body) wire_.body += part;
    wire_.sink = &sink;
    wire_.room = true;
    return std::make_unique<WireStream>(wire_);
  }

 private:
  Clock& clock_;
  Wire& wire_;
};

struct Events : GenerateSink {
  bool on_event(core::GenerateEvent event) override {
    EXPECT_FALSE(end);
    if (const auto* token = std::get_if<core::TokenEvent>(&event)) {
      text += token->text;
      reasoning += token->reasoning;
      for (const core::ToolCall& call : token->tool_calls) calls.push_back(call);
      ++tokens;
      return tokens < room;
    }
    done = std::get<core::DoneEvent>(event);
    return true;
  }
  void on_end(Status status) override {
    EXPECT_FALSE(end);
    end = std::move(status);
  }
  std::string text;
  std::string reasoning;
  std::vector<core::ToolCall> calls;
  int tokens = 0;
  int room = 1'000'000;
  std::optional<core::DoneEvent> done;
  std::optional<Status> end;
};

struct Passed : ForwardSink {
  void on_head(ForwardHead got) override { head = std::move(got); }
  bool on_piece(std::string piece) override {
    body += piece;
    return room;
  }
  [[nodiscard]] bool complete() const override { return body.ends_with("[DONE]"); }
  void on_end(Status status) override {
    EXPECT_FALSE(end);
    end = std::move(status);
  }
  std::optional<ForwardHead> head;
  std::string body;
  bool room = true;
  std::optional<Status> end;
};

class CommandRequestTest : public ::testing::Test {
 protected:
  CommandRequestTest() {
    client_ = std::make_unique<CommandClient>(
        clock_, std::make_unique<ReadyPeer>(clock_, wire_),
        CommandProbe{ProbeKind::kCompletion, "", "ours"}, 1, observer_,
        [this](std::function<void()> work) { pool_.push_back(std::move(work)); });
    EXPECT_TRUE(clock_.run_until([&] { return observer_.ready; }, std::chrono::minutes(1)));
  }
  void generate(const core::GenerateRequest& request, Duration timeout = std::chrono::minutes(10)) {
    events_ = std::make_shared<Events>();
    call_ = client_->generate(request, clock_.now() + timeout, events_);
    clock_.settle();
  }
  void forward(Duration timeout = std::chrono::minutes(10)) {
    passed_ = std::make_shared<Passed>();
    call_ = client_->forward({"/v1/embeddings", {R"({"model":)", R"(,"input":"a"})"}},
                             clock_.now() + timeout, passed_);
    clock_.settle();
  }
  static core::GenerateRequest prompt(const std::string& text) {
    core::GenerateRequest request;
    request.input = core::PromptInput{text};
    return request;
  }
  Result<core::Embeddings> embed(const core::EmbedRequest& request, unsigned int status,
                                 const std::string& body) {
    std::optional<Result<core::Embeddings>> answered;
    call_ = client_->embed(request, clock_.now() + std::chrono::minutes(1),
                           [&](Result<core::Embeddings> got) {
                             EXPECT_FALSE(answered);
                             answered = std::move(got);
                           });
    clock_.settle();
    if (!answered) {
      wire_.head(status, "application/json");
      wire_.piece(body);
      wire_.end({});
    }
    EXPECT_TRUE(answered);
    return answered ? *answered : fail(Reason::kInternal, "no answer");
  }
  // The end of a generation that is answered so.
  Status end_of(unsigned int status, const std::string& type, const std::string& body,
                const Status& connection = {}) {
    generate(prompt("x"));
    wire_.head(status, type);
    wire_.piece(body);
    wire_.end(connection);
    EXPECT_TRUE(events_->end);
    return events_->end ? *events_->end : fail(Reason::kInternal, "no end");
  }

  sim::SimClock clock_{1};
  Wire wire_;
  NoObserver observer_;
  std::unique_ptr<CommandClient> client_;
  std::shared_ptr<Events> events_;
  std::shared_ptr<Passed> passed_;
  std::vector<std::function<void()>> pool_;
  std::unique_ptr<WorkerCall> call_;
};

inline constexpr const char* kStream = "text/event-stream; charset=utf-8";

}  // namespace berth::rpc
