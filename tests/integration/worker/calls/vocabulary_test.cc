// Tokenize, Detokenize and CountTokens.

#include "tests/integration/worker/calls/calling.h"

namespace berth::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Stub = v1::Worker::Stub;

class Vocabulary : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    worker_ = new WorkerProcess({tinychat(), {"--context", "512"}});
    const auto event = worker_->wait_loaded();
    ASSERT_TRUE(event && event->has_ready()) << worker_->log();
  }
  static void TearDownTestSuite() {
    delete worker_;
    worker_ = nullptr;
  }

  static Reply<v1::TokenizeResponse> tokenize(const v1::TokenizeRequest& request) {
    return reply(*worker_, &Stub::Tokenize, request);
  }
  static Reply<v1::DetokenizeResponse> detokenize(const v1::DetokenizeRequest& request) {
    return reply(*worker_, &Stub::Detokenize, request);
  }
  static v1::TokenizeRequest text(const std::string& text) {
    v1::TokenizeRequest request;
    request.set_text(text);
    return request;
  }
  template <typename Response>
  static v1::ErrorDetail error_of(const Reply<Response>& made) {
    EXPECT_EQ(made.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_TRUE(made.error.has_value());
    return made.error.value_or(v1::ErrorDetail());
  }

  static WorkerProcess* worker_;
};

WorkerProcess* Vocabulary::worker_ = nullptr;

TEST_F(Vocabulary, TextsComeBackAsTheyWere) {
  for (const std::string& original :
       {std::string("Hello, world!"), std::string("  two  blanks \n\t"),
        std::string("Grüße 🙂"), std::string("\0x", 2), std::string("x")}) {
    auto request = text(original);
    request.set_add_special(false);
    const auto tokens = tokenize(request);
    ASSERT_TRUE(tokens.status.ok()) << tokens.status.error_message();
    ASSERT_EQ(tokens.response.ids_size(), tokens.response.texts_size());
    std::string joined;
    for (const auto& piece : tokens.response.texts()) joined += piece;
    EXPECT_EQ(joined, original);

    v1::DetokenizeRequest back;
    *back.mutable_ids() = tokens.response.ids();
    EXPECT_EQ(detokenize(back).response.text(), original);
  }
}

TEST_F(Vocabulary, BosAndControlTokensAreAsAskedFor) {
  auto request = text("<|im_start|>x");
  EXPECT_EQ(tokenize(request).response.ids(0), 1);  // <s>
  EXPECT_EQ(tokenize(request).response.ids(1), 2);  // <|im_start|>
  request.set_add_special(false);
  const auto special = tokenize(request).response;
  EXPECT_EQ(special.ids(0), 2);
  EXPECT_EQ(special.texts(0), "<|im_start|>");
  request.set_parse_special(false);
  const auto plain = tokenize(request).response;
  EXPECT_GT(plain.ids_size(), special.ids_size());
  for (const int id : plain.ids()) EXPECT_NE(id, 2);

  v1::DetokenizeRequest back;
  back.add_ids(2);
  EXPECT_EQ(detokenize(back).response.text(), "");
  back.set_show_control(true);
  EXPECT_EQ(detokenize(back).response.text(), "<|im_start|>");
}

TEST_F(Vocabulary, T80_EmptyTextsHaveNoTokensOfTheirOwn) {
  auto request = text("");
  EXPECT_THAT(tokenize(request).response.ids(), ElementsAre(1));
  request.set_add_special(false);
  EXPECT_THAT(tokenize(request).response.ids(), IsEmpty());
  EXPECT_EQ(detokenize({}).response.text(), "");
}

TEST_F(Vocabulary, AChatHasTheTokensThatGenerateReads) {
  const auto chat = greedy_chat("Who are you?");
  const auto generated = worker_->generate(chat);
  ASSERT_TRUE(generated.done.has_value());
  v1::TokenizeRequest request;
  *request.mutable_chat() = chat.chat();
  const auto tokens = tokenize(request).response;
  EXPECT_EQ(static_cast<std::uint32_t>(tokens.ids_size()), generated.done->usage().prompt_tokens());

  auto same = greedy_prompt("");
  for (const int id : tokens.ids()) same.mutable_tokens()->add_ids(id);
  EXPECT_EQ(worker_->generate(same).text, generated.text);
}

TEST_F(Vocabulary, CountingKnowsTheWindowAndIsNotBoundByIt) {
  std::string words = "falcon";
  for (int i = 1; i < 1000; ++i) words += " falcon";
  const auto made = reply(*worker_, &Stub::CountTokens, text(words));
  ASSERT_TRUE(made.status.ok()) << made.status.error_message();
  EXPECT_EQ(made.response.tokens(), 1001U);  // with BOS
  EXPECT_EQ(made.response.window(), 512U);
}

TEST_F(Vocabulary, BadInputIsRefusedByName) {
  EXPECT_EQ(error_of(tokenize({})).param(), "input");
  const auto bytes = error_of(tokenize(text("ab\xff")));
  EXPECT_EQ(bytes.param(), "text");
  EXPECT_THAT(bytes.message(), HasSubstr("byte 2"));
  EXPECT_EQ(error_of(tokenize(text(std::string((4 << 20) + 1, 'x')))).param(), "text");
  EXPECT_EQ(error_of(reply(*worker_, &Stub::CountTokens, text("\xff"))).param(), "text");

  v1::TokenizeRequest chat;
  chat.mutable_chat()->set_messages_json("[");
  EXPECT_EQ(error_of(tokenize(chat)).param(), "chat.messages_json");

  v1::DetokenizeRequest ids;
  ids.add_ids(1);
  ids.add_ids(1 << 30);
  EXPECT_EQ(error_of(detokenize(ids)).param(), "ids[1]");
  ids.set_ids(1, -1);
  EXPECT_EQ(error_of(detokenize(ids)).param(), "ids[1]");
  ids.mutable_ids()->Resize((1 << 20) + 1, 1);
  EXPECT_EQ(error_of(detokenize(ids)).param(), "ids");
}

}  // namespace
}  // namespace berth::worker
