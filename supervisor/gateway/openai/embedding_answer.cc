#include "supervisor/gateway/openai/embedding_answer.h"

#include <bit>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "common/base64.h"
#include "common/json_text.h"
#include "supervisor/gateway/embedding.h"
#include "supervisor/gateway/http/error_response.h"
#include "supervisor/gateway/openai/answer_parts.h"

namespace berth::gateway::openai {
namespace {

void append_numbers(std::string& out, const std::vector<float>& values) {
  out += '[';
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    append_json_number(out, values[i]);
  }
  out += ']';
}

void append_coded(std::string& out, const std::vector<float>& values) {
  static_assert(std::endian::native == std::endian::little, "OpenAI's bytes are little-endian");
  out += '"';
  append_base64(out, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  out += '"';
}

// The embedding of one request's texts, from both of its sides. Kept alive by the embedding until
// its last call, and by the server until the answer is sent.
class EmbeddingAnswer : public Handler, public EmbeddingResponder {
 public:
  EmbeddingAnswer(Exchange exchange, bool base64)
      : exchange_(std::move(exchange)), base64_(base64) {}

  void run(std::shared_ptr<Embedding> embedding) {
    const std::lock_guard lock(mutex_);
    embedding_ = std::move(embedding);
  }
  Status on_answer(core::Embeddings embeddings, const std::string& model) override {
    Result<std::string> body = embeddings_json(embeddings, model, base64_);
    if (!body) {
      on_failed(body.error());
      return fail(body.error());
    }
    HttpResponse response;
    response.body = *std::move(body);
    exchange_.reply->send(std::move(response));
    let_go();
    return {};
  }
  void on_failed(const Error& error) override {
    exchange_.reply->send(error_response(with_openai_names(error), exchange_.id, exchange_.caller));
    let_go();
  }
  void on_gone() override {
    if (const std::shared_ptr<Embedding> running = let_go()) running->cancel();
  }

 private:
  std::shared_ptr<Embedding> let_go() {
    const std::lock_guard lock(mutex_);
    return std::move(embedding_);
  }

  const Exchange exchange_;
  const bool base64_;
  std::mutex mutex_;
  std::shared_ptr<Embedding> embedding_;
};

}  // namespace

Result<std::string> embeddings_json(const core::Embeddings& embeddings, const std::string& model,
                                    bool base64) {
  std::string out = R"({"object":"list","data":[)";
  for (std::size_t i = 0; i < embeddings.embeddings.size(); ++i) {
    if (i > 0) out += ',';
    out += R"({"object":"embedding","index":)";
    append_whole(out, i);
    out += ",\"embedding\":";
    const std::vector<float>& values = embeddings.embeddings[i].values;
    if (base64) {
      append_coded(out, values);
    } else {
      append_numbers(out, values);
    }
    out += '}';
    if (out.size() > kMaxWholeAnswer) {
      return fail(too_many_embeddings("input", embeddings.embeddings.size(), values.size()));
    }
  }
  out += "],\"model\":";
  append_json_string(out, model);
  out += ",\"usage\":{\"prompt_tokens\":";
  append_whole(out, embeddings.prompt_tokens);
  out += ",\"total_tokens\":";
  append_whole(out, embeddings.prompt_tokens);
  out += "}}\n";
  return out;
}

std::shared_ptr<Handler> start_embedding_answer(const residency::Services& services,
                                                Exchange exchange, EmbeddingRequest request) {
  request.embed.request_id = exchange.id;
  const core::Caller caller = exchange.caller;
  const auto answer = std::make_shared<EmbeddingAnswer>(std::move(exchange), request.base64);
  // Its first call comes by way of the core strand, where this runs: after run().
  answer->run(Embedding::start(services, caller, std::move(request.embed),
                               services.clock.now() + kLongestRequest, answer));
  return answer;
}

}  // namespace berth::gateway::openai
