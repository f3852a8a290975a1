#include "worker/service/embed_work.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "worker/engine/fewest_tokens.h"
#include "worker/service/call_lines.h"
#include "worker/service/invalid_argument.h"
#include "worker/service/preparer.h"
#include "worker/service/request_check.h"

namespace berth::worker {
namespace {

// Makes the answer of the vectors: on a preparer's thread, for the context thread has batches of
// others to compute. Lives until the call has ended.
class EmbedAnswer final : public EmbedSink, public std::enable_shared_from_this<EmbedAnswer> {
 public:
  EmbedAnswer(Preparer& preparer, std::shared_ptr<UnaryCall> call, const v1::EmbedRequest& request,
              v1::EmbedResponse& response, EmbedShape shape, std::vector<std::uint32_t> counts)
      : preparer_(preparer),
        call_(std::move(call)),
        request_id_(request.request_id()),
        model_(request.model()),
        response_(response),
        shape_(shape),
        counts_(std::move(counts)) {}

  [[nodiscard]] bool cancelled() const override { return call_->cancelled(); }

  void on_end(EmbedEnd end) override {
    if (auto* const result = std::get_if<EmbedResult>(&end)) {
      preparer_.post([self = shared_from_this(), held = std::make_shared<EmbedResult>(
                                                     std::move(*result))] { self->answer(*held); });
    } else if (auto* const error = std::get_if<Error>(&end)) {
      call_->on_end(std::move(*error));
    } else {
      call_->on_end(JobCancelled{});
    }
  }

 private:
  void answer(EmbedResult& result) {
    if (call_->cancelled()) {
      call_->on_end(JobCancelled{});
    } else if (auto filled = fill(result); !filled) {
      call_->on_end(filled.error());
    } else {
      call_->answer();
    }
  }

  Status fill(EmbedResult& result) {
    if (result.vectors.size() != counts_.size()) {
      return fail(Reason::kInternal, "The model gave another number of embeddings than inputs.");
    }
    for (auto& vector : result.vectors) {
      if (auto shaped = shape_vector(vector, shape_); !shaped) return shaped;
    }
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      auto& embedding = *response_.add_embeddings();
      embedding.mutable_values()->Assign(result.vectors[i].begin(), result.vectors[i].end());
      embedding.set_tokens(counts_[i]);
    }
    response_.set_prompt_tokens(static_cast<std::uint32_t>(result.prompt_tokens));
    response_.set_request_id(request_id_);
    response_.set_model(model_);
    return {};
  }

  Preparer& preparer_;
  const std::shared_ptr<UnaryCall> call_;
  const std::string request_id_;
  const std::string model_;
  v1::EmbedResponse& response_;
  const EmbedShape shape_;
  const std::vector<std::uint32_t> counts_;  // tokens of each input
};

std::string name_of(int index) {
  return "inputs[" + std::to_string(index) + "]";
}

// Tokens of the longest input.
std::uint32_t most_tokens(const EngineFacts& facts) {
  return std::min(facts.batch, facts.window);
}

// `has` says how many they are, or are at least.
tl::unexpected<Error> too_long(const std::string& param, const std::string& has,
                               std::uint64_t tokens, std::uint32_t limit) {
  ErrorExtras extras;
  extras.param = param;
  extras.needed = tokens;
  extras.limit = limit;
  return fail(Error(Reason::kWindowExceeded,
                    param + " has " + has + std::to_string(tokens) +
                        " tokens, but an input of this model may have " + std::to_string(limit) +
                        ". Shorten it, or raise the model's batch and context.",
                    std::move(extras)));
}

Result<std::vector<TokenId>> tokens_of_text(const Engine& engine, const std::string& text,
                                            const std::string& param,
                                            std::uint32_t token_bytes_bound) {
  if (text.empty()) return invalid_argument(param, param + " is empty.");
  if (text.size() > EmbedBounds::kTextBytes) {
    return invalid_argument(param, param + " has " + std::to_string(text.size()) +
                                       " bytes; at most " +
                                       std::to_string(EmbedBounds::kTextBytes) + " are allowed.");
  }
  if (auto checked = check_utf8(text, param); !checked) return fail(checked.error());
  const auto limit = most_tokens(engine.facts());
  if (const auto least = fewest_tokens(text, token_bytes_bound); least > limit) {
    return too_long(param, "at least ", least, limit);
  }
  return engine.tokenize_whole(text);
}

}  // namespace

Result<EmbedShape> check_embed(const v1::EmbedRequest& request, const EngineFacts& facts) {
  if (facts.purpose != Purpose::kEmbed || facts.embedding_size == 0) {
    return invalid_argument(
        "model",
        "This model is served for generating, and gives no embeddings. Set `embeddings "
        "= true` for it in the configuration, or use a model that is made for them.");
  }
  if (request.inputs_size() == 0) {
    return invalid_argument("inputs", "inputs is empty; at least one input is needed.");
  }
  if (request.inputs_size() > EmbedBounds::kInputs) {
    return invalid_argument("inputs",
                            "There are " + std::to_string(request.inputs_size()) +
                                " inputs; at most 2048 are allowed. Send them in pieces.");
  }
  EmbedShape shape;
  shape.dimensions = facts.embedding_size;
  if (request.has_dimensions()) {
    shape.dimensions = request.dimensions();
    if (shape.dimensions == 0 || shape.dimensions > facts.embedding_size) {
      return out_of_range("dimensions",
                          "1 to " + std::to_string(facts.embedding_size) +
                              ", the numbers of this model's embeddings",
                          std::to_string(shape.dimensions));
    }
  }
  // All of each vector is computed and held, also where it is cut then.
  const auto bytes =
      static_cast<std::uint64_t>(request.inputs_size()) * facts.embedding_size * sizeof(float);
  if (bytes > EmbedBounds::kAnswerBytes) {
    return invalid_argument("inputs", std::to_string(request.inputs_size()) + " embeddings of " +
                                          std::to_string(facts.embedding_size) + " numbers are " +
                                          std::to_string(bytes) + " bytes; at most " +
                                          std::to_string(EmbedBounds::kAnswerBytes) +
                                          " are computed in one call. Send the inputs in pieces.");
  }
  shape.normalize = !request.has_normalize() || request.normalize();
  return shape;
}

Result<std::vector<TokenId>> embed_tokens(const Engine& engine, const v1::EmbedInput& input,
                                          int index, std::uint32_t token_bytes_bound) {
  const auto param = name_of(index);
  const auto& facts = engine.facts();
  Result<std::vector<TokenId>> tokens;
  switch (input.input_case()) {
    case v1::EmbedInput::kText:
      tokens = tokens_of_text(engine, input.text(), param, token_bytes_bound);
      break;
    case v1::EmbedInput::kTokens:
      tokens = check_tokens(input.tokens().ids(), facts.vocabulary, param + ".tokens.ids");
      break;
    case v1::EmbedInput::INPUT_NOT_SET:
      return invalid_argument(param, param + " has neither text nor tokens.");
  }
  if (!tokens) return tokens;
  if (tokens->empty()) return invalid_argument(param, param + " is empty: it has no token.");
  const auto limit = most_tokens(facts);
  if (tokens->size() > limit) return too_long(param, "", tokens->size(), limit);
  return tokens;
}

Result<std::vector<std::vector<TokenId>>> embed_inputs(const Engine& engine,
                                                       const v1::EmbedRequest& request,
                                                       std::uint32_t token_bytes_bound,
                                                       const std::function<bool()>& abandoned) {
  std::vector<std::vector<TokenId>> inputs;
  inputs.reserve(static_cast<std::size_t>(request.inputs_size()));
  for (int i = 0; i < request.inputs_size(); ++i) {
    if (abandoned()) return fail(Reason::kDeadline, "Nobody waits for these embeddings any more.");
    auto tokens = embed_tokens(engine, request.inputs(i), i, token_bytes_bound);
    if (!tokens) return fail(tokens.error());
    inputs.push_back(std::move(*tokens));
  }
  return inputs;
}

Status shape_vector(std::vector<float>& vector, const EmbedShape& shape) {
  if (vector.size() < shape.dimensions ||
      !std::all_of(vector.begin(), vector.end(),
                   [](float value) { return std::isfinite(value); })) {
    return fail(Reason::kInternal, "The model computed no usable embedding.");
  }
  vector.resize(shape.dimensions);
  if (!shape.normalize) return {};
  double sum = 0;
  for (const float value : vector) sum += static_cast<double>(value) * value;
  const double length = std::sqrt(sum);
  if (length == 0) return {};
  for (float& value : vector) value = static_cast<float>(value / length);
  return {};
}

EmbedWork::EmbedWork(std::shared_ptr<UnaryCall> call, v1::EmbedRequest request,
                     v1::EmbedResponse& response)
    : call_(std::move(call)), request_(std::move(request)), response_(response) {}

void EmbedWork::run(Preparer& preparer) {
  preparer_ = &preparer;
  outcome_ = make_job();
}

Status EmbedWork::make_job() {
  const auto& engine = preparer_->engine();
  const auto shape = check_embed(request_, engine.facts());
  if (!shape) return fail(shape.error());
  shape_ = *shape;
  auto inputs = embed_inputs(engine, request_, preparer_->token_bytes_bound(),
                             [this] { return preparer_->abandoned_other(); });
  if (!inputs) return fail(inputs.error());
  job_ = std::make_unique<EmbedJob>();
  job_->inputs = std::move(*inputs);
  return {};
}

void EmbedWork::deliver() {
  if (!outcome_) {
    call_->on_end(outcome_.error());
    return;
  }
  std::vector<std::uint32_t> counts;
  for (const auto& input : job_->inputs) counts.push_back(static_cast<std::uint32_t>(input.size()));
  job_->sink = std::make_shared<EmbedAnswer>(*preparer_, call_, request_, response_, shape_,
                                             std::move(counts));
  job_->arrived = call_->arrived();
  job_->deadline = deadline_of(*call_);
  if (auto submitted = preparer_->runner().submit_embed(std::move(job_)); !submitted) {
    call_->on_end(submitted.error());
  }
}

}  // namespace berth::worker
