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
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

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
    return clock_.sleep_for(1ms, [done = std::move(done)] {
      done({CommandListener::Who::kChild, ""});
    });
  }
  Timer call(const CommandRequest& request,
             std::function<void(Result<CommandAnswer>)> done) override {
    const std::string body = request.path == "/v1/models" ? R"({"data":[{"id":"their \"name\""}]})"
                                                          : R"({"choices":[{"text":"a"}]})";
    return clock_.sleep_for(1ms, [done = std::move(done), body] {
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
    EXPECT_TRUE(clock_.run_until([&] { return observer_.ready; }, 1min));
  }
  void generate(const core::GenerateRequest& request, Duration timeout = 10min) {
    events_ = std::make_shared<Events>();
    call_ = client_->generate(request, clock_.now() + timeout, events_);
    clock_.settle();
  }
  void forward(Duration timeout = 10min) {
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
    call_ = client_->embed(request, clock_.now() + 1min, [&](Result<core::Embeddings> got) {
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

constexpr const char* kStream = "text/event-stream; charset=utf-8";

TEST_F(CommandRequestTest, L27_AGenerationIsAskedForInOpenAisWords) {
  core::GenerateRequest request;
  core::ChatInput chat;
  chat.messages_json = R"([{"role":"user","content":"ü\u00fc","n":18446744073709551615}])";
  chat.tools_json = R"([{"type":"function"}])";
  chat.tool_choice_json = R"("auto")";
  chat.template_variables_json = R"({"enable_thinking":false})";
  request.input = chat;
  request.sampling.temperature = 0.1F;
  request.sampling.seed = 4294967295U;
  request.sampling.repetition_penalty = 1.1F;
  request.sampling.logit_bias = {{7, -200}, {8, 0.5F}};
  request.sampling.ignore_eos = true;
  request.max_tokens = 5;
  request.stop = {"\n", "é"};
  request.format = core::JsonSchemaFormat{R"({"type":"object"})"};
  generate(request);
  EXPECT_EQ(wire_.path, "/v1/chat/completions");
  EXPECT_EQ(wire_.body,
            R"({"model":"their \"name\"",)"
            R"("messages":[{"role":"user","content":"ü\u00fc","n":18446744073709551615}],)"
            R"("tools":[{"type":"function"}],"tool_choice":"auto",)"
            R"("chat_template_kwargs":{"enable_thinking":false},)"
            R"("response_format":{"type":"json_schema","json_schema":)"
            R"({"name":"answer","strict":true,"schema":{"type":"object"}}},)"
            R"("temperature":0.1,"seed":4294967295,"repeat_penalty":1.1,"repetition_penalty":1.1,)"
            R"("ignore_eos":true,"logit_bias":{"7":-100,"8":0.5},"max_tokens":5,)"
            R"("stop":["\n","é"],"stream":true,"stream_options":{"include_usage":true}})");

  request = {};
  request.input = core::TokenInput{{1, 2}};
  generate(request);
  EXPECT_EQ(wire_.path, "/v1/completions");
  EXPECT_THAT(wire_.body, HasSubstr(R"(,"prompt":[1,2],)"));
}

TEST_F(CommandRequestTest, L27_WhatNoProgramCanBeAskedForIsRefused) {
  core::GenerateRequest grammar = prompt("x");
  grammar.format = core::GrammarFormat{"root ::= \"a\""};
  core::GenerateRequest logprobs = prompt("x");
  logprobs.top_logprobs = 1;
  core::GenerateRequest raw;
  core::ChatInput chat;
  chat.messages_json = "[]";
  chat.raw_answer = true;
  raw.input = chat;
  for (const auto& request : {grammar, logprobs, raw}) {
    generate(request);
    ASSERT_TRUE(events_->end && !*events_->end);
    EXPECT_EQ(events_->end->error().reason, Reason::kInvalidArgument);
  }
}

TEST_F(CommandRequestTest, L27_NoMemberCanBePutIntoTheBodyOfAProgram) {
  const auto says = [this](const core::GenerateRequest& request) {
    wire_.body = "nothing";
    generate(request);
    EXPECT_EQ(wire_.body, "nothing");
    if (!events_->end || *events_->end || !events_->end->error().extras) return std::string();
    EXPECT_EQ(events_->end->error().reason, Reason::kInvalidArgument);
    return events_->end->error().extras->param;
  };
  const auto chat = [&says](const core::ChatInput& input) {
    core::GenerateRequest request;
    request.input = input;
    return says(request);
  };
  for (const char* const messages :
       {R"([],"model":"other")", "[", "[1]]", "{}", "\"a\"", "null", " ", "[1] 2", "[01]"}) {
    EXPECT_EQ(chat({messages}), "chat.messages_json") << messages;
  }
  EXPECT_EQ(chat({std::string(200, '[') + std::string(200, ']')}), "chat.messages_json");
  for (const char* const tools : {R"([],"model":"other")", "{}", "[1,"}) {
    EXPECT_EQ(chat({"[]", tools}), "chat.tools_json") << tools;
  }
  for (const char* const choice : {R"("auto","model":"other")", "auto", "1", "[]"}) {
    EXPECT_EQ(chat({"[]", "", true, choice}), "chat.tool_choice_json") << choice;
  }
  for (const char* const variables : {R"({},"model":"other")", "[]", "{1:2}"}) {
    EXPECT_EQ(chat({"[]", "", true, "", variables}), "chat.template_variables_json") << variables;
  }
  for (const char* const schema : {R"({}},"model":"other","x":{"y":{)", "[]", "1", "t"}) {
    core::GenerateRequest request = prompt("x");
    request.format = core::JsonSchemaFormat{schema};
    EXPECT_EQ(says(request), "format.json_schema") << schema;
  }
}

TEST_F(CommandRequestTest, L27_AStreamBecomesEvents) {
  generate(prompt("x"));
  wire_.head(200, kStream);
  const std::string stream =
      ": ping\r\n\r\n"
      "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null}}]}\n\n"
      "data:{\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n"
      "data: {\"choices\":[{\"delta\":{\"content\":\"Gr\u00fc\"}}],\"usage\":null}\n\n"
      "data: {\"choices\":[{\"delta\":{\"content\":\"\u00dfe\"}}]}\r\n\r\n"
      "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"c\",\"function\":"
      "{\"name\":\"f\",\"arguments\":\"{\"}}]}}]}\n\n"
      "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n"
      "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3,"
      "\"prompt_tokens_details\":{\"cached_tokens\":2}}}\n\n"
      "data: [DONE]\n\n";
  clock_.advance(2s);
  for (const char byte : stream) wire_.piece(std::string(1, byte));
  EXPECT_EQ(wire_.sink, nullptr) << "complete at [DONE]";
  ASSERT_TRUE(events_->end && *events_->end);
  EXPECT_EQ(events_->text, "Gr\u00fc\u00dfe");
  EXPECT_EQ(events_->reasoning, "hm");
  ASSERT_THAT(events_->calls, SizeIs(1));
  EXPECT_EQ(events_->calls[0].index, 1U);
  EXPECT_EQ(events_->calls[0].name, "f");
  EXPECT_EQ(events_->calls[0].arguments, "{");
  EXPECT_EQ(events_->done->finish_reason, "tool_calls");
  EXPECT_EQ(events_->done->usage.prompt_tokens, 7U);
  EXPECT_EQ(events_->done->usage.cached_tokens, 2U);
  EXPECT_EQ(events_->done->timings.first_token_us, 2'000'000U);
}

TEST_F(CommandRequestTest, L27_AProgramThatKnowsNoStreamsIsUnderstood) {
  ASSERT_TRUE(end_of(200, "application/json",
                     R"({"choices":[{"message":{"content":"ab","tool_calls":[{"id":"c",)"
                     R"("function":{"name":"f","arguments":"{}"}}]},"finish_reason":"length"}]})"));
  EXPECT_EQ(events_->text, "ab");
  EXPECT_THAT(events_->calls, SizeIs(1));
  EXPECT_EQ(events_->done->finish_reason, "length");
  ASSERT_TRUE(end_of(200, "application/json", R"({"choices":[{"text":"a"}]})"));
  EXPECT_EQ(events_->text, "a");
}

TEST_F(CommandRequestTest, LargeAnswersAreReadOnThePool) {
  const std::string padding(kLargeAnswer, ' ');
  generate(prompt("x"));
  wire_.head(200, "application/json");
  wire_.piece(R"({"choices":[{"text":"a"}]})" + padding);
  wire_.end({});
  EXPECT_FALSE(events_->end);
  ASSERT_THAT(pool_, SizeIs(1));
  std::exchange(pool_, {}).front()();
  ASSERT_TRUE(events_->end && *events_->end);
  EXPECT_EQ(events_->text, "a");

  core::EmbedRequest request;
  request.inputs = {core::PromptInput{"x"}};
  std::optional<Result<core::Embeddings>> answered;
  call_ = client_->embed(request, clock_.now() + 1min,
                         [&](Result<core::Embeddings> got) { answered = std::move(got); });
  clock_.settle();
  wire_.head(200, "application/json");
  wire_.piece(R"({"data":[{"embedding":[1]}]})" + padding);
  wire_.end({});
  EXPECT_FALSE(answered);
  ASSERT_THAT(pool_, SizeIs(1));
  pool_.front()();
  ASSERT_TRUE(answered);
  EXPECT_TRUE(*answered);
}

TEST_F(CommandRequestTest, L27_AnswersThatCannotBeReadAreErrors) {
  for (const char* const body :
       {"data: {\"choices\":[{\n\n", "data: 1\n\n", "data: {\"error\":{\"message\":\"m\"}}\n\n"}) {
    const Status end = end_of(200, kStream, body);
    ASSERT_FALSE(end) << body;
    EXPECT_EQ(end.error().reason, Reason::kInternal) << body;
  }
  EXPECT_FALSE(end_of(200, "application/json", "{}"));
  EXPECT_FALSE(end_of(200, "text/html", "<p>"));
  generate(prompt("x"));
  wire_.head(200, kStream);
  for (int i = 0; i < 5; ++i) wire_.piece(std::string(1UL << 20U, 'x'));
  ASSERT_TRUE(events_->end) << "a line has a bound";
  EXPECT_EQ(events_->end->error().reason, Reason::kInternal);
}

TEST_F(CommandRequestTest, L9_L27_AnAnswerThatBreaksOffIsOneOfAWorkerThatDied) {
  const std::string token = "data: {\"choices\":[{\"text\":\"a\"}]}\n\n";
  Status end = end_of(200, kStream, token, fail(Reason::kWorkerDied, "reset"));
  EXPECT_EQ(end.error().reason, Reason::kWorkerDied);
  EXPECT_EQ(events_->text, "a");
  end = end_of(200, kStream, token);
  ASSERT_FALSE(end) << "ended without an end";
  EXPECT_EQ(end.error().reason, Reason::kWorkerDied);
  EXPECT_TRUE(
      end_of(200, kStream, token + "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n"))
      << "some send no [DONE]";
}

TEST_F(CommandRequestTest, L27_RefusalsOfTheProgramAreTranslated) {
  struct Case {
    unsigned int status;
    const char* body;
    Reason reason;
    const char* says;
  };
  for (const Case& each : {
           Case{400, R"({"error":{"message":"too long: /home/me/model.bin x"}})",
                Reason::kInvalidArgument, "answered 400: too long: <path>"},
           Case{422, R"({"detail":"bad"})", Reason::kInvalidArgument, "answered 422: bad"},
           Case{404, "<html>", Reason::kInvalidArgument, "answered 404."},
           Case{429, R"({"error":"busy"})", Reason::kQueueFull, "answered 429: busy"},
           Case{401, "{}", Reason::kInternal, "answered 401."},
           Case{302, "", Reason::kInternal, "answered 302."},
           Case{500, R"({"message":"oops"})", Reason::kInternal, "answered 500: oops"},
       }) {
    const Status end = end_of(each.status, "application/json", each.body);
    ASSERT_FALSE(end) << each.status;
    EXPECT_EQ(end.error().reason, each.reason) << each.status;
    EXPECT_THAT(end.error().message, HasSubstr(each.says));
    EXPECT_TRUE(end.error().extras && end.error().extras->quotes) << "its words are for no log";
  }
}

TEST_F(CommandRequestTest, L27_AClientWithoutRoomPausesTheProgram) {
  generate(prompt("x"));
  events_->room = 2;
  wire_.head(200, kStream);
  std::string three;
  for (int i = 0; i < 3; ++i) three += "data: {\"choices\":[{\"text\":\"a\"}]}\n\n";
  EXPECT_TRUE(wire_.piece(three));
  EXPECT_FALSE(wire_.room);
  EXPECT_EQ(events_->tokens, 2);
  events_->room = 3;
  call_->resume();
  clock_.settle();
  EXPECT_EQ(events_->tokens, 3);
  EXPECT_FALSE(wire_.room);
  events_->room = 1000;
  call_->resume();
  clock_.settle();
  EXPECT_TRUE(wire_.room);
  EXPECT_TRUE(wire_.piece("data: [DONE]\n\n"));
  EXPECT_TRUE(events_->end && *events_->end);
}

TEST_F(CommandRequestTest, L27_AnEndWaitsForRoom) {
  generate(prompt("x"));
  events_->room = 1;
  wire_.head(200, kStream);
  wire_.piece(
      "data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: {\"choices\":[{\"text\":\"b\"}]}\n\n");
  wire_.end(fail(Reason::kWorkerDied, "reset"));
  EXPECT_FALSE(events_->end);
  events_->room = 1000;
  call_->resume();
  clock_.settle();
  EXPECT_EQ(events_->text, "ab");
  EXPECT_TRUE(events_->end);
}

TEST_F(CommandRequestTest, T31_ACancelClosesTheConnectionAtOnce) {
  generate(prompt("x"));
  wire_.head(200, kStream);
  ASSERT_NE(wire_.sink, nullptr);
  call_->cancel();
  clock_.settle();
  EXPECT_EQ(wire_.sink, nullptr);
  EXPECT_TRUE(events_->end && !*events_->end);

  forward();
  ASSERT_NE(wire_.sink, nullptr);
  call_.reset();
  clock_.settle();
  EXPECT_EQ(wire_.sink, nullptr) << "a dropped call is a cancelled one";
}

TEST_F(CommandRequestTest, M19_TheDeadlineEndsItAlsoWithoutRoom) {
  generate(prompt("x"), 5s);
  events_->room = 1;
  wire_.head(200, kStream);
  wire_.piece("data: {\"choices\":[{\"text\":\"a\"}]}\n\n");
  clock_.advance(6s);
  EXPECT_EQ(wire_.sink, nullptr);
  ASSERT_TRUE(events_->end);
  EXPECT_EQ(events_->end->error().reason, Reason::kDeadline);
}

TEST_F(CommandRequestTest, L27_WhatIsPassedOnEndsWhenItIsComplete) {
  forward();
  wire_.head(200, kStream);
  wire_.piece("data: 1");
  EXPECT_FALSE(passed_->end);
  wire_.piece("data: [DONE]");
  EXPECT_EQ(wire_.sink, nullptr) << "its connection may stay open for long";
  EXPECT_TRUE(passed_->end && *passed_->end);
}

TEST_F(CommandRequestTest, L27_ARequestIsPassedOnWithTheProgramsNameOfItsModel) {
  forward();
  EXPECT_EQ(wire_.path, "/v1/embeddings");
  EXPECT_EQ(wire_.body, R"({"model":"their \"name\"","input":"a"})");
  wire_.sink->on_head({503, "application/json", "", "5"});
  EXPECT_EQ(passed_->head->status, 503U);
  EXPECT_EQ(passed_->head->retry_after, "5");
  passed_->room = false;
  wire_.piece("abc");
  EXPECT_FALSE(wire_.room);
  call_->resume();
  clock_.settle();
  EXPECT_TRUE(wire_.room);
  wire_.piece("d");
  wire_.end({});
  EXPECT_EQ(passed_->body, "abcd");
  EXPECT_FALSE(passed_->end) << "no room";
  call_->resume();
  clock_.settle();
  EXPECT_TRUE(passed_->end && *passed_->end);
}

TEST_F(CommandRequestTest, L27_HeadersOfAProgramAreNotTrusted) {
  forward();
  wire_.sink->on_head({200, "a\r\nSet-Cookie: b", "identity", std::string(300, '1')});
  EXPECT_EQ(passed_->head->content_type, "");
  EXPECT_EQ(passed_->head->retry_after, "");
  forward();
  wire_.sink->on_head({200, "application/json", "gzip", ""});
  EXPECT_FALSE(passed_->head);
  ASSERT_TRUE(passed_->end && !*passed_->end);
  EXPECT_EQ(passed_->end->error().reason, Reason::kInternal);
  EXPECT_EQ(wire_.sink, nullptr);
}

TEST_F(CommandRequestTest, L27_VectorsAreAskedForInOpenAisWords) {
  core::EmbedRequest request;
  request.inputs = {core::PromptInput{"\"a\""}, core::PromptInput{"b"}};
  request.dimensions = 2;
  const auto answered = embed(request, 200,
                              R"({"data":[{"index":1,"embedding":[0,-2.5]},)"
                              R"({"index":0,"embedding":[3,4,9]}],"usage":{"prompt_tokens":5}})");
  EXPECT_EQ(wire_.path, "/v1/embeddings");
  EXPECT_EQ(wire_.body,
            R"({"model":"their \"name\"","input":["\"a\"","b"],"encoding_format":"float",)"
            R"("dimensions":2})");
  ASSERT_TRUE(answered) << answered.error().message;
  EXPECT_EQ(answered->prompt_tokens, 5U);
  EXPECT_THAT(answered->embeddings[0].values, ElementsAre(0.6F, 0.8F)) << "cut, then normalised";
  EXPECT_THAT(answered->embeddings[1].values, ElementsAre(0, -1));

  request.inputs = {core::TokenInput{{1, 2}}, core::TokenInput{{3}}};
  request.normalize = false;
  EXPECT_TRUE(embed(request, 200, R"({"data":[{"embedding":[1]},{"embedding":[2]}]})"));
  EXPECT_THAT(wire_.body, HasSubstr(R"("input":[[1,2],[3]])"));
}

TEST_F(CommandRequestTest, L27_WhatAreNoVectorsIsAnError) {
  core::EmbedRequest request;
  request.inputs = {core::PromptInput{"a"}, core::PromptInput{"b"}};
  for (const char* const body :
       {"", "{}", R"({"data":[{"embedding":[1]}]})",
        R"({"data":[{"embedding":[1]},{"embedding":[]}]})",
        R"({"data":[{"embedding":[1]},{"embedding":["x"]}]})",
        R"({"data":[{"embedding":[1]},{"embedding":[1e39]}]})",
        R"({"data":[{"index":1,"embedding":[1]},{"index":1,"embedding":[1]}]})",
        R"({"data":[{"index":2,"embedding":[1]},{"index":0,"embedding":[1]}]})"}) {
    const auto answered = embed(request, 200, body);
    ASSERT_FALSE(answered) << body;
    EXPECT_EQ(answered.error().reason, Reason::kInternal) << body;
  }
  EXPECT_EQ(embed(request, 400, R"({"error":{"message":"m"}})").error().reason,
            Reason::kInvalidArgument);
  request.inputs.emplace_back(core::TokenInput{{1}});
  EXPECT_EQ(embed(request, 200, "{}").error().reason, Reason::kInvalidArgument) << "both kinds";
}

TEST_F(CommandRequestTest, L27_AProgramIsNotAskedForItsTokens) {
  std::optional<Result<core::TokenCount>> count;
  call_ = client_->count_tokens({}, clock_.now() + 1min,
                                [&](Result<core::TokenCount> got) { count = std::move(got); });
  clock_.settle();
  ASSERT_TRUE(count && !*count);
  EXPECT_EQ(count->error().reason, Reason::kInvalidArgument);
}

TEST_F(CommandRequestTest, ARequestOutlivesItsClient) {
  forward();
  client_.reset();
  wire_.head(200, "application/json");
  wire_.piece("a");
  wire_.end({});
  EXPECT_TRUE(passed_->end && *passed_->end);
}

}  // namespace
}  // namespace berth::rpc
