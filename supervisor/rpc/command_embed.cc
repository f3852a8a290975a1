#include "supervisor/rpc/command_embed.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <boost/system/error_code.hpp>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "supervisor/rpc/command_events.h"

namespace berth::rpc {
namespace {

namespace json = boost::json;

constexpr std::size_t kLongestAnswer = 16UL << 20U;
constexpr std::size_t kLongestError = 64UL << 10U;

Error unreadable() {
  return {Reason::kInternal, "The model's program sent what are no vectors for these texts."};
}

const json::value* member(const json::value& value, const char* key) {
  const json::object* object = value.if_object();
  return object == nullptr ? nullptr : object->if_contains(key);
}

std::optional<std::uint32_t> whole(const json::value* value) {
  if (value == nullptr) return std::nullopt;
  boost::system::error_code failed;
  const auto number = value->to_number<std::uint32_t>(failed);
  return failed ? std::nullopt : std::optional(number);
}

// Empty: it is none.
std::vector<float> read_vector(const json::value* value) {
  const json::array* numbers = value == nullptr ? nullptr : value->if_array();
  std::vector<float> vector;
  if (numbers == nullptr) return vector;
  vector.reserve(numbers->size());
  for (const json::value& item : *numbers) {
    boost::system::error_code failed;
    const auto number = static_cast<float>(item.to_number<double>(failed));
    if (failed || !std::isfinite(number)) return {};
    vector.push_back(number);
  }
  return vector;
}

void normalize(std::vector<float>& vector) {
  double sum = 0;
  for (const float number : vector) sum += static_cast<double>(number) * number;
  if (sum <= 0) return;
  const double length = std::sqrt(sum);
  for (float& number : vector) number = static_cast<float>(number / length);
}

class EmbedReader : public CommandReader {
 public:
  EmbedReader(ForwardRequest body, const core::EmbedRequest& request,
              OnAnswer<core::Embeddings> done)
      : body_(std::move(body)),
        count_(request.inputs.size()),
        normalize_(request.normalize),
        dimensions_(request.dimensions),
        done_(std::move(done)) {}

  CommandPost request(const std::string& model) override {
    return {std::move(body_.path),
            {std::move(body_.body.front()), model, std::move(body_.body.back())}};
  }
  Status on_head(CommandHead head) override {
    status_ = head.status;
    retry_after_ = std::move(head.retry_after);
    return {};
  }
  Result<bool> on_piece(std::string piece) override {
    if (!succeeded()) {
      answer_.append(piece, 0, kLongestError - std::min(kLongestError, answer_.size()));
      return true;
    }
    if (answer_.size() + piece.size() > kLongestAnswer) {
      return fail(Reason::kInternal,
                  "The model's program sent vectors of more than 16 MiB. Ask for fewer at once.");
    }
    answer_ += piece;
    return true;
  }
  [[nodiscard]] bool ends_slowly() const override { return answer_.size() >= kLargeAnswer; }
  void on_end(Status status) override {
    const auto done = std::move(done_);
    if (status_ != 0 && !succeeded()) {
      return done(fail(command_error(status_, answer_, retry_after_)));
    }
    if (!status) return done(fail(status.error()));
    done(read());
  }

 private:
  [[nodiscard]] bool succeeded() const { return status_ >= 200 && status_ < 300; }

  [[nodiscard]] Result<core::Embeddings> read() const {
    boost::system::error_code failed;
    const json::value answer = json::parse(answer_, failed);
    const json::value* data = failed ? nullptr : member(answer, "data");
    const json::array* items = data == nullptr ? nullptr : data->if_array();
    if (items == nullptr || items->size() != count_) return fail(unreadable());
    core::Embeddings read;
    read.embeddings.resize(count_);
    for (std::size_t i = 0; i < count_; ++i) {
      const json::value& item = (*items)[i];
      const std::size_t index = whole(member(item, "index")).value_or(i);
      if (index >= count_ || !read.embeddings[index].values.empty()) return fail(unreadable());
      std::vector<float> vector = read_vector(member(item, "embedding"));
      if (vector.empty()) return fail(unreadable());
      // One that knows no `dimensions` sends all.
      if (dimensions_ && vector.size() > *dimensions_) vector.resize(*dimensions_);
      if (normalize_) normalize(vector);
      read.embeddings[index].values = std::move(vector);
    }
    if (const json::value* usage = member(answer, "usage")) {
      read.prompt_tokens = whole(member(*usage, "prompt_tokens")).value_or(0);
    }
    if (count_ == 1) read.embeddings.front().tokens = read.prompt_tokens;
    return read;
  }

  ForwardRequest body_;
  const std::size_t count_;
  const bool normalize_;
  const std::optional<std::uint32_t> dimensions_;
  OnAnswer<core::Embeddings> done_;
  unsigned int status_ = 0;  // 0: none yet
  std::string retry_after_;
  std::string answer_;
};

}  // namespace

Result<ForwardRequest> embedding_body(const core::EmbedRequest& request) {
  json::array inputs;
  for (const core::EmbedInput& input : request.inputs) {
    if (input.index() != request.inputs.front().index()) {
      return invalid_argument("inputs",
                              "The model is a program of its own (kind = \"command\"), which takes "
                              "texts or tokens, not both in one request.");
    }
    if (const auto* prompt = std::get_if<core::PromptInput>(&input)) {
      inputs.emplace_back(prompt->text);
    } else {
      const std::vector<std::int32_t>& ids = std::get<core::TokenInput>(input).ids;
      inputs.emplace_back(json::array(ids.begin(), ids.end()));
    }
  }
  std::string rest = ",\"input\":" + json::serialize(inputs) + ",\"encoding_format\":\"float\"";
  if (request.dimensions) rest += ",\"dimensions\":" + std::to_string(*request.dimensions);
  if (!request.user.empty()) {
    rest +=
        ",\"user\":" + json::serialize(json::string_view(request.user.data(), request.user.size()));
  }
  ForwardRequest made;
  made.path = "/v1/embeddings";
  made.body = {"{\"model\":", rest + "}"};
  return made;
}

std::unique_ptr<CommandReader> embed_reader(ForwardRequest body, const core::EmbedRequest& request,
                                            OnAnswer<core::Embeddings> done) {
  return std::make_unique<EmbedReader>(std::move(body), request, std::move(done));
}

}  // namespace berth::rpc
