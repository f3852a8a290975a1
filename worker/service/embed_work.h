#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "berth/v1/inference.pb.h"
#include "common/result.h"
#include "worker/engine/engine.h"
#include "worker/lanes/job.h"
#include "worker/service/pending_call.h"
#include "worker/service/unary_call.h"

namespace berth::worker {

struct EmbedBounds {
  static constexpr int kInputs = 2048;
  static constexpr std::size_t kTextBytes = std::size_t{4} << 20U;  // of one input
  // Of the numbers of all, before they are cut. The supervisor takes messages of 256 MiB.
  static constexpr std::size_t kAnswerBytes = std::size_t{64} << 20U;
};

// What an Embed call asks of the vectors.
struct EmbedShape {
  std::uint32_t dimensions = 0;  // 1 to the model's
  bool normalize = true;
};

// Everything but the inputs' texts. Errors: kInvalidArgument with the field, and for a model that
// gives no embeddings how to get them.
Result<EmbedShape> check_embed(const v1::EmbedRequest& request, const EngineFacts& facts);

// The tokens of input number `index`. `token_bytes_bound` is TokenBytes::bound: a text
// that cannot be short enough is refused before it is tokenized. Errors: kInvalidArgument where it
// is empty, not UTF-8 or has unknown tokens; kWindowExceeded with both numbers where it is longer
// than a batch.
Result<std::vector<TokenId>> embed_tokens(const Engine& engine, const v1::EmbedInput& input,
                                          int index, std::uint32_t token_bytes_bound);

// Of all inputs. Asks before each whether it is `abandoned`: all together may take long. Errors: as
// embed_tokens(); kDeadline where it is.
Result<std::vector<std::vector<TokenId>>> embed_inputs(const Engine& engine,
                                                       const v1::EmbedRequest& request,
                                                       std::uint32_t token_bytes_bound,
                                                       const std::function<bool()>& abandoned);

// Cuts a vector and makes it of length 1 (Euclid), as the shape says. A vector of zeros stays one.
// Errors: kInternal where the model gave no usable numbers.
Status shape_vector(std::vector<float>& vector, const EmbedShape& shape);

// Checks and tokenizes an Embed call and has the lanes compute it. `response` is gRPC's, and
// written only when the vectors are there.
class EmbedWork final : public CallWork {
 public:
  EmbedWork(std::shared_ptr<UnaryCall> call, v1::EmbedRequest request, v1::EmbedResponse& response);

  void run(Preparer& preparer) override;
  void deliver() override;

 private:
  Status make_job();

  const std::shared_ptr<UnaryCall> call_;
  const v1::EmbedRequest request_;
  v1::EmbedResponse& response_;
  Preparer* preparer_ = nullptr;  // set by run()
  Status outcome_;
  EmbedShape shape_;
  std::unique_ptr<EmbedJob> job_;
};

}  // namespace berth::worker
