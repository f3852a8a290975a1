// Embed, with models that embed and one that does not.

#include <cmath>

#include "tests/integration/worker/calls/calling.h"
#include "tests/models/random_model.h"

namespace berth::worker {
namespace {

using testing::HasSubstr;

Reply<v1::EmbedResponse> embed(WorkerProcess& worker, const v1::EmbedRequest& request) {
  return reply(worker, &v1::Worker::Stub::Embed, request);
}

v1::EmbedRequest texts(const std::vector<std::string>& all) {
  v1::EmbedRequest request;
  for (const auto& text : all) request.add_inputs()->set_text(text);
  return request;
}

double length(const v1::Embedding& embedding) {
  double sum = 0;
  for (const float value : embedding.values()) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

class Embed : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = new Scratch();
    test_models::ModelOptions options;
    options.architecture = "bert";
    const auto files = test_models::write_model(options, scratch_->path("bert.gguf"));
    ASSERT_TRUE(files.has_value());
    worker_ = new WorkerProcess({files->front(), {"--context", "64", "--sequences", "4"}});
    const auto event = worker_->wait_loaded();
    ASSERT_TRUE(event && event->has_ready()) << worker_->log();
    EXPECT_TRUE(event->ready().can_embed());
    EXPECT_FALSE(event->ready().can_generate());
    size_ = event->ready().embedding_size();
  }
  static void TearDownTestSuite() {
    delete worker_;
    worker_ = nullptr;
    delete scratch_;
    scratch_ = nullptr;
  }
  static v1::ErrorDetail refused(const v1::EmbedRequest& request) {
    const auto made = embed(*worker_, request);
    EXPECT_EQ(made.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_TRUE(made.error.has_value());
    return made.error.value_or(v1::ErrorDetail());
  }

  static Scratch* scratch_;
  static WorkerProcess* worker_;
  static std::uint32_t size_;
};

Scratch* Embed::scratch_ = nullptr;
WorkerProcess* Embed::worker_ = nullptr;
std::uint32_t Embed::size_ = 0;

// [CLS] in front and [SEP] behind, as the encoder was trained.
TEST_F(Embed, ATextIsReadAsItsOwnTokens) {
  v1::TokenizeRequest text;
  text.set_text("a [SEP] text");
  text.set_parse_special(false);
  const auto tokens = reply(*worker_, &v1::Worker::Stub::Tokenize, text);
  ASSERT_TRUE(tokens.status.ok()) << tokens.status.error_message();
  ASSERT_GT(tokens.response.texts_size(), 2);
  EXPECT_EQ(tokens.response.texts(0), "[CLS]");
  EXPECT_EQ(*tokens.response.texts().rbegin(), "[SEP]");

  auto request = texts({text.text()});
  request.add_inputs()->mutable_tokens()->mutable_ids()->CopyFrom(tokens.response.ids());
  const auto made = embed(*worker_, request);
  ASSERT_EQ(made.response.embeddings_size(), 2) << made.status.error_message();
  const auto& of_text = made.response.embeddings(0);
  const auto& of_tokens = made.response.embeddings(1);
  EXPECT_EQ(of_text.tokens(), of_tokens.tokens());
  for (int i = 0; i < of_text.values_size(); ++i) {
    EXPECT_NEAR(of_text.values(i), of_tokens.values(i), 1e-3);
  }
}

TEST_F(Embed, InputsOfAllSortsInTheirOrder) {
  std::vector<std::string> all;
  for (int i = 0; i < 20; ++i) all.push_back("text number " + std::to_string(i));
  auto request = texts(all);
  request.set_request_id("req-1");
  request.set_model("bert");
  const auto made = embed(*worker_, request);
  ASSERT_TRUE(made.status.ok()) << made.status.error_message();
  ASSERT_EQ(made.response.embeddings_size(), 20);
  EXPECT_EQ(made.response.request_id(), "req-1");
  EXPECT_EQ(made.response.model(), "bert");
  std::uint32_t tokens = 0;
  for (const auto& embedding : made.response.embeddings()) {
    EXPECT_EQ(static_cast<std::uint32_t>(embedding.values_size()), size_);
    EXPECT_NEAR(length(embedding), 1, 1e-4);
    tokens += embedding.tokens();
  }
  EXPECT_EQ(made.response.prompt_tokens(), tokens);

  const auto alone = embed(*worker_, texts({all[7]}));
  ASSERT_EQ(alone.response.embeddings_size(), 1);
  for (int i = 0; i < alone.response.embeddings(0).values_size(); ++i) {
    EXPECT_NEAR(alone.response.embeddings(0).values(i), made.response.embeddings(7).values(i),
                1e-3);
  }
}

TEST_F(Embed, DimensionsAreCutBeforeTheLengthIsMadeOne) {
  auto request = texts({"one"});
  request.set_normalize(false);
  const auto whole = embed(*worker_, request).response;
  request.set_dimensions(5);
  const auto cut = embed(*worker_, request).response;
  ASSERT_EQ(cut.embeddings_size(), 1);
  ASSERT_EQ(cut.embeddings(0).values_size(), 5);
  for (int i = 0; i < 5; ++i) {
    EXPECT_FLOAT_EQ(cut.embeddings(0).values(i), whole.embeddings(0).values(i));
  }
  request.set_normalize(true);
  EXPECT_NEAR(length(embed(*worker_, request).response.embeddings(0)), 1, 1e-4);
}

TEST_F(Embed, BadInputIsRefusedByName) {
  EXPECT_EQ(refused({}).param(), "inputs");
  EXPECT_EQ(refused(texts({"a", ""})).param(), "inputs[1]");
  EXPECT_EQ(refused(texts({"a", "\xff"})).param(), "inputs[1]");
  EXPECT_EQ(refused(texts(std::vector<std::string>(2049, "a"))).param(), "inputs");
  auto request = texts({"a"});
  request.set_dimensions(size_ + 1);
  EXPECT_EQ(refused(request).param(), "dimensions");
  request.set_dimensions(0);
  EXPECT_EQ(refused(request).param(), "dimensions");
  v1::EmbedRequest tokens;
  tokens.add_inputs()->mutable_tokens()->add_ids(1 << 30);
  EXPECT_EQ(refused(tokens).param(), "inputs[0].tokens.ids[0]");
}

TEST_F(Embed, T80_NothingToEmbedIsRefusedAndTheNextCallIsAnswered) {
  EXPECT_EQ(refused(v1::EmbedRequest()).param(), "inputs");
  EXPECT_EQ(refused(texts({"a", ""})).param(), "inputs[1]");
  v1::EmbedRequest tokenless;
  tokenless.add_inputs()->mutable_tokens();
  EXPECT_EQ(refused(tokenless).param(), "inputs[0]");
  EXPECT_EQ(embed(*worker_, texts({"a"})).response.embeddings_size(), 1);
}

TEST_F(Embed, T93_TooLongAnInputIsRefusedWithBothNumbers) {
  v1::EmbedRequest request;
  for (int i = 0; i < 65; ++i) request.add_inputs()->mutable_tokens()->add_ids(5);
  EXPECT_TRUE(embed(*worker_, request).status.ok());
  for (int i = 1; i < 65; ++i) request.mutable_inputs(64)->mutable_tokens()->add_ids(5);
  const auto error = refused(request);
  EXPECT_EQ(error.reason(), "window_exceeded");
  EXPECT_EQ(error.param(), "inputs[64]");
  EXPECT_EQ(error.needed(), 65U);
  EXPECT_EQ(error.limit(), 64U);
}

TEST_F(Embed, DeadlinesAndCancellingEndACall) {
  auto request = texts({"a"});
  request.set_deadline_ms(0);
  const auto late = embed(*worker_, request);
  EXPECT_EQ(late.status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  ASSERT_TRUE(late.error.has_value());
  EXPECT_EQ(late.error->reason(), "deadline");

  const auto many = texts(std::vector<std::string>(2048, "some words of a text"));
  for (int i = 0; i < 5; ++i) {
    const auto gone =
        reply(*worker_, &v1::Worker::Stub::Embed, many, std::chrono::milliseconds(1 + 3 * i));
    EXPECT_TRUE(gone.status.ok() ||
                gone.status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  EXPECT_TRUE(embed(*worker_, texts({"a"})).status.ok());
}

TEST_F(Embed, AModelForEmbeddingsGeneratesNothing) {
  const auto outcome = worker_->generate(greedy_prompt("x"));
  EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  ASSERT_TRUE(outcome.error.has_value());
  EXPECT_EQ(outcome.error->param(), "model");
}

TEST(EmbedElsewhere, AModelForGeneratingSaysHowToGetEmbeddings) {
  WorkerProcess worker({tinychat(), {"--context", "64"}});
  ASSERT_TRUE(worker.wait_loaded().has_value());
  const auto made = embed(worker, texts({"a"}));
  EXPECT_EQ(made.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  ASSERT_TRUE(made.error.has_value());
  EXPECT_THAT(made.error->message(), HasSubstr("embeddings = true"));
}

}  // namespace
}  // namespace berth::worker
