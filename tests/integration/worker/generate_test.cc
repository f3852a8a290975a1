#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/worker/worker_process.h"
#include "tests/models/random_model.h"

namespace berth::worker {
namespace {

using testing::HasSubstr;

class Generate : public testing::Test {
 protected:
  // One worker for all tests that only ask it something.
  static void SetUpTestSuite() {
    worker_ = new WorkerProcess({tinychat(), {"--context", "1024"}});
    const auto event = worker_->wait_loaded();
    ASSERT_TRUE(event && event->has_ready()) << worker_->log();
  }
  static void TearDownTestSuite() {
    delete worker_;
    worker_ = nullptr;
  }

  static v1::ErrorDetail refused(const v1::GenerateRequest& request, grpc::StatusCode code) {
    const auto outcome = worker_->generate(request);
    EXPECT_EQ(outcome.status.error_code(), code) << outcome.status.error_message();
    EXPECT_TRUE(outcome.error.has_value());
    EXPECT_TRUE(outcome.trailer.has_value());
    if (!outcome.error || !outcome.trailer) return {};
    EXPECT_EQ(outcome.error->SerializeAsString(), outcome.trailer->SerializeAsString());
    EXPECT_EQ(outcome.error->message(), outcome.status.error_message());
    return *outcome.error;
  }

  static WorkerProcess* worker_;
};

WorkerProcess* Generate::worker_ = nullptr;

TEST_F(Generate, GreedyIsRepeatable) {
  const auto first = worker_->generate(greedy_chat("Who are you?"));
  const auto second = worker_->generate(greedy_chat("Who are you?"));
  EXPECT_EQ(first.text,
            "I am TinyChat, a very small language model made to test a local model server.");
  EXPECT_EQ(second.text, first.text);
  EXPECT_EQ(second.ids, first.ids);
}

TEST_F(Generate, UsageAndTimingsAreTrue) {
  const auto outcome = worker_->generate(greedy_chat("Who are you?"));
  ASSERT_TRUE(outcome.done.has_value());
  EXPECT_EQ(outcome.done->finish_reason(), "stop");
  EXPECT_EQ(outcome.done->usage().prompt_tokens(), 13U);
  EXPECT_EQ(outcome.done->usage().completion_tokens(), outcome.ids.size());
  EXPECT_GT(outcome.done->timings().first_token_us(), 0U);
  EXPECT_GT(outcome.done->timings().decode_us(), 0U);
}

TEST_F(Generate, SameSeedSameText) {
  auto request = greedy_prompt("Once upon a time");
  request.mutable_sampling()->set_temperature(2);
  request.mutable_sampling()->set_top_p(1);
  request.mutable_sampling()->set_top_k(0);
  request.set_max_tokens(40);
  std::set<std::string> texts;
  for (const std::uint32_t seed : {1U, 2U, 3U, 4294967295U}) {  // the last is random to libllama
    request.mutable_sampling()->set_seed(seed);
    const auto first = worker_->generate(request);
    const auto second = worker_->generate(request);
    EXPECT_EQ(first.text, second.text);
    texts.insert(first.text);
  }
  EXPECT_GT(texts.size(), 1U);
}

TEST_F(Generate, TextIsAlwaysWholeCharacters) {
  auto request = greedy_prompt("x");
  request.mutable_sampling()->set_temperature(50);  // every token, also single bytes
  request.mutable_sampling()->set_top_k(0);
  request.mutable_sampling()->set_top_p(1);
  request.set_max_tokens(300);
  for (const std::uint32_t seed : {1U, 2U, 3U}) {
    request.mutable_sampling()->set_seed(seed);
    const auto outcome = worker_->generate(request);  // protobuf refuses a text that is not UTF-8
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.error_message();
    EXPECT_FALSE(outcome.text.empty());
  }
}

TEST_F(Generate, EndsBeforeAStopTextAcrossTokens) {
  auto request = greedy_chat("Who are you?");
  request.add_stop("never said");
  request.add_stop("very small lang");
  const auto outcome = worker_->generate(request);
  ASSERT_TRUE(outcome.done.has_value());
  EXPECT_EQ(outcome.text, "I am TinyChat, a ");
  EXPECT_EQ(outcome.done->finish_reason(), "stop");
  EXPECT_EQ(outcome.done->stop_text(), "very small lang");
}

TEST_F(Generate, MaxTokensBound) {
  auto request = greedy_chat("Who are you?");
  request.set_max_tokens(3);
  const auto outcome = worker_->generate(request);
  ASSERT_TRUE(outcome.done.has_value());
  EXPECT_EQ(outcome.done->finish_reason(), "length");
  EXPECT_EQ(outcome.done->usage().completion_tokens(), 3U);
  request.set_max_tokens(0);
  const auto none = worker_->generate(request);
  ASSERT_TRUE(none.done.has_value());
  EXPECT_EQ(none.text, "");
}

TEST_F(Generate, TokensArePromptsToo) {
  auto request = greedy_prompt("");
  for (const int id : {1, 2}) request.mutable_tokens()->add_ids(id);  // <s> <|im_start|>
  request.set_max_tokens(1);
  const auto outcome = worker_->generate(request);
  ASSERT_TRUE(outcome.done.has_value()) << outcome.status.error_message();
  EXPECT_EQ(outcome.done->usage().prompt_tokens(), 2U);
}

TEST_F(Generate, T80_EmptyPromptBeginsWithBos) {
  auto request = greedy_prompt("");
  request.set_max_tokens(1);
  const auto outcome = worker_->generate(request);
  ASSERT_TRUE(outcome.done.has_value()) << outcome.status.error_message();
  EXPECT_EQ(outcome.done->usage().prompt_tokens(), 1U);
}

TEST_F(Generate, T80_SpecialTokensInTextAreTokens) {
  auto request = greedy_prompt("<s><|im_start|>");
  request.set_max_tokens(1);
  const auto outcome = worker_->generate(request);
  ASSERT_TRUE(outcome.done.has_value());
  EXPECT_EQ(outcome.done->usage().prompt_tokens(), 2U);  // and BOS is not doubled
}

TEST_F(Generate, T93_PromptLongerThanTheWindowIsRefusedWithBothNumbers) {
  std::string text = "falcon";
  for (int i = 1; i < 1100; ++i) text += " falcon";
  auto request = greedy_prompt(text);
  request.set_request_id("req-1");
  const auto error = refused(request, grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(error.reason(), "window_exceeded");
  EXPECT_EQ(error.needed(), 1102U);  // with BOS and one token of answer
  EXPECT_EQ(error.limit(), 1024U);
  EXPECT_EQ(error.request_id(), "req-1");
  EXPECT_THAT(error.message(), HasSubstr("1101"));
  EXPECT_THAT(error.message(), HasSubstr("1024"));
}

TEST_F(Generate, T93_PromptThatJustFitsIsReadInFull) {
  std::string text = "falcon";
  for (int i = 1; i < 1022; ++i) text += " falcon";
  const auto outcome = worker_->generate(greedy_prompt(text));
  ASSERT_TRUE(outcome.done.has_value()) << outcome.status.error_message();
  EXPECT_EQ(outcome.done->usage().prompt_tokens(), 1023U);
  EXPECT_LE(outcome.done->usage().completion_tokens(), 1U);
  EXPECT_GE(outcome.prefills, 1);  // two chunks
}

TEST_F(Generate, BadRequestsAreRefusedByName) {
  using enum grpc::StatusCode;
  EXPECT_EQ(refused(v1::GenerateRequest(), INVALID_ARGUMENT).param(), "input");

  auto heat = greedy_prompt("x");
  heat.mutable_sampling()->set_temperature(std::nanf(""));
  EXPECT_EQ(refused(heat, INVALID_ARGUMENT).param(), "sampling.temperature");

  const auto bytes = refused(greedy_prompt("ab\xff"), INVALID_ARGUMENT);
  EXPECT_EQ(bytes.param(), "prompt");
  EXPECT_THAT(bytes.message(), HasSubstr("byte 2"));

  v1::GenerateRequest unknown_token;
  unknown_token.mutable_tokens()->add_ids(4516);
  EXPECT_EQ(refused(unknown_token, INVALID_ARGUMENT).param(), "tokens.ids[0]");
  v1::GenerateRequest no_token;
  no_token.mutable_tokens();
  EXPECT_EQ(refused(no_token, INVALID_ARGUMENT).reason(), "invalid_argument");

  const auto message = refused(greedy_messages(R"([{"role":"user"}])"), INVALID_ARGUMENT);
  EXPECT_EQ(message.param(), "chat.messages_json");
  EXPECT_THAT(message.message(), HasSubstr("messages[0]"));
}

TEST_F(Generate, DeadlineEndsARequest) {
  auto request = greedy_prompt("x");
  request.set_deadline_ms(0);
  EXPECT_EQ(refused(request, grpc::StatusCode::DEADLINE_EXCEEDED).reason(), "deadline");
}

TEST_F(Generate, CancelInTheMiddleLeavesTheNextRequestRight) {
  auto request = greedy_prompt("Once upon a time");
  request.mutable_sampling()->set_temperature(5);
  request.mutable_sampling()->set_seed(1);
  for (int i = 0; i < 5; ++i) {
    const auto cancelled = worker_->generate(request, [](const auto& event, auto& context) {
      if (event.has_token()) context.TryCancel();
    });
    EXPECT_EQ(cancelled.status.error_code(), grpc::StatusCode::CANCELLED);
    const auto next = worker_->generate(greedy_chat("What can you do?"));
    EXPECT_EQ(next.text,
              "I can remember names and code words, repeat text, add small numbers and count.");
  }
}

// Whatever requests ask, they are served by the instance that is there.
TEST(Requests, T45_OptionsNeverChangeTheInstance) {
  WorkerProcess worker({tinychat(), {"--context", "1024", "--sequences", "2"}});
  const auto event = worker.wait_loaded();
  ASSERT_TRUE(event && event->has_ready()) << worker.log();
  const auto window = [&worker] {
    v1::TokenizeRequest request;
    request.set_text("x");
    v1::CountTokensResponse response;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    EXPECT_TRUE(worker.stub().CountTokens(&context, request, &response).ok());
    return response.window();
  };
  const auto before = worker.generate(greedy_chat("Who are you?"));

  std::vector<v1::GenerateRequest> requests(6, greedy_chat("Who are you?"));
  for (auto& request : requests) request.set_max_tokens(24);
  auto& hot = *requests[0].mutable_sampling();
  hot.set_temperature(1.5F);
  hot.set_top_k(3);
  hot.set_top_p(0.9F);
  hot.set_seed(11);
  requests[1].mutable_format()->set_json_object(true);
  requests[2].mutable_format()->set_json_schema(R"({"type":"integer"})");
  requests[3].mutable_format()->set_grammar("root ::= \"yes\" | \"no\"");
  requests[4].set_top_logprobs(20);
  requests[5].set_max_tokens(100000);  // more than the window: up to its end
  for (const auto& request : requests) {
    const auto outcome = worker.generate(request);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.error_message();
    EXPECT_EQ(window(), 1024U);
  }
  const auto after = worker.generate(greedy_chat("Who are you?"));
  EXPECT_EQ(after.text, before.text);

  // Nothing was loaded again.
  v1::ControlRequest drain;
  drain.mutable_drain();
  worker.send(drain);
  bool drained = false;
  while (!drained) {
    const auto next = worker.next_event();
    ASSERT_TRUE(next.has_value());
    EXPECT_FALSE(next->has_ready() || next->has_progress() || next->has_load_failed());
    drained = next->has_drained();
  }
}

// --- workers of other kinds

class OtherModels : public testing::Test {
 protected:
  OtherModels() {
    std::string pattern = "/tmp/berth-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~OtherModels() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::string random_model(const test_models::ModelOptions& options) const {
    const auto files = test_models::write_model(options, directory_ + "/random.gguf");
    EXPECT_TRUE(files.has_value());
    return files ? files->front() : "";
  }
  [[nodiscard]] std::string write(const std::string& name, const std::string& text) const {
    const auto path = directory_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }

  std::string directory_;
};

TEST_F(OtherModels, ModelWithoutTemplateIsNotChat) {
  WorkerProcess worker({random_model({.chat_template = std::nullopt}), {}});
  const auto event = worker.wait_loaded();
  ASSERT_TRUE(event && event->has_ready()) << worker.log();
  EXPECT_FALSE(event->ready().can_chat());
  const auto outcome = worker.generate(greedy_chat("x"));
  EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  ASSERT_TRUE(outcome.error.has_value());
  EXPECT_EQ(outcome.error->reason(), "not_chat");
}

TEST_F(OtherModels, BrokenTemplateFailsTheRequestAndNotTheWorker) {
  WorkerProcess worker({random_model({.chat_template = "{% for x in %}"}), {}});
  ASSERT_TRUE(worker.wait_loaded().has_value());
  const auto chat = worker.generate(greedy_chat("x"));
  ASSERT_TRUE(chat.error.has_value());
  EXPECT_EQ(chat.error->reason(), "template_failed");
  auto prompt = greedy_prompt("x");
  prompt.set_max_tokens(4);
  EXPECT_TRUE(worker.generate(prompt).status.ok());
}

TEST_F(OtherModels, TemplateOfTheOperatorIsUsedAndBosIsNotDoubled) {
  const auto path = write("t.jinja", R"({{ bos_token }}{% for m in messages %}
{{- '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' -}}
{% endfor %}{{ '<|im_start|>assistant\n' }})");
  WorkerProcess worker({tinychat(), {"--chat-template", path, "--context", "512"}});
  ASSERT_TRUE(worker.wait_loaded().has_value());
  const auto outcome = worker.generate(greedy_chat("Who are you?"));
  ASSERT_TRUE(outcome.done.has_value()) << outcome.status.error_message();
  EXPECT_EQ(outcome.done->usage().prompt_tokens(), 13U);  // as with the model's own
  EXPECT_THAT(outcome.text, HasSubstr("I am TinyChat"));
}

TEST_F(OtherModels, FillsTheWindowAndSaysSo) {
  WorkerProcess worker({random_model({}), {"--context", "100"}});
  const auto event = worker.wait_loaded();
  ASSERT_TRUE(event && event->has_ready()) << worker.log();
  EXPECT_EQ(event->ready().window(), 100U);
  const auto outcome = worker.generate(greedy_prompt("x y z"));
  ASSERT_TRUE(outcome.done.has_value()) << outcome.status.error_message();
  EXPECT_EQ(outcome.done->finish_reason(), "length");
  EXPECT_EQ(outcome.done->usage().prompt_tokens() + outcome.done->usage().completion_tokens(),
            100U);
}

// Slow enough that what is left of the prompt takes far longer than a cancel needs to arrive.
TEST_F(OtherModels, T31_CancelInALongPrefillFreesTheLane) {
  const auto path = random_model({.layers = 4, .embedding = 256, .feed_forward = 512});
  WorkerProcess worker({path, {"--context", "8192", "--batch", "64"}});
  const auto event = worker.wait_loaded();
  ASSERT_TRUE(event && event->has_ready()) << worker.log();
  v1::GenerateRequest request;
  for (int i = 0; i < 5000; ++i) request.mutable_tokens()->add_ids(300 + i % 97);
  request.mutable_sampling()->set_temperature(0);
  request.set_max_tokens(1);

  const auto cancelled = worker.generate(request, [](const auto& one, auto& context) {
    EXPECT_FALSE(one.has_token());
    if (one.has_prefill()) context.TryCancel();
  });
  EXPECT_EQ(cancelled.status.error_code(), grpc::StatusCode::CANCELLED);

  // There is one lane only, and it was not read to its end for nobody.
  const auto outcome = worker.generate(request);
  ASSERT_TRUE(outcome.done.has_value()) << outcome.status.error_message();
  EXPECT_EQ(outcome.done->usage().prompt_tokens(), 5000U);
  EXPECT_LT(outcome.done->usage().cached_tokens(), 4999U);
}

TEST_F(OtherModels, OtherTokenizersAndTypesGenerate) {
  for (const auto tokenizer : {test_models::Tokenizer::kBpe, test_models::Tokenizer::kSpm}) {
    const auto path = random_model({.embedding = 128, .tokenizer = tokenizer, .tied_output = true});
    for (const char* const kv : {"f32", "q8_0"}) {
      WorkerProcess worker({path, {"--kv-type", kv, "--threads", "1", "--context", "256"}});
      const auto event = worker.wait_loaded();
      ASSERT_TRUE(event && event->has_ready()) << worker.log();
      EXPECT_EQ(event->ready().threads(), 1U);
      auto request = greedy_prompt("Grüße an alle");
      request.set_max_tokens(20);
      const auto outcome = worker.generate(request);
      EXPECT_TRUE(outcome.status.ok()) << outcome.status.error_message();
    }
  }
}

TEST_F(OtherModels, ShardedModelIsOneModel) {
  WorkerProcess worker({random_model({.shards = 3}), {}});
  const auto event = worker.wait_loaded();
  ASSERT_TRUE(event && event->has_ready()) << worker.log();
}

}  // namespace
}  // namespace berth::worker
