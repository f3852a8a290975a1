#include <algorithm>
#include <boost/json/array.hpp>
#include <limits>
#include <utility>

#include "supervisor/gateway/openai/exchange.h"
#include "supervisor/gateway/openai/fields.h"
#include "supervisor/gateway/openai/json_body.h"
#include "supervisor/gateway/openai/requests.h"
#include "supervisor/gateway/openai/text_fields.h"
#include "supervisor/gateway/validate.h"

namespace berth::gateway::openai {
namespace {

namespace json = boost::json;

void read_input(const json::value& value, const std::string& path, FirstError& errors,
                std::vector<core::EmbedInput>& to) {
  const json::array* list = value.if_array();
  if (const json::string* text = value.if_string()) {
    if (text->empty()) return errors.add(path, path + " is empty.");
    to.emplace_back(core::PromptInput{{text->data(), text->size()}});
  } else if (list == nullptr) {
    errors.add(path, path + " must be a text or a list of the ids of tokens, not " +
                         describe(value) + ".");
  } else if (list->empty()) {
    errors.add(path, path + " is empty.");
  } else {
    to.emplace_back(core::TokenInput{read_token_ids(*list, path, errors)});
  }
}

void read_inputs(const Fields& body, std::vector<core::EmbedInput>& to) {
  const json::value* value = body.find("input");
  if (value == nullptr) return body.refuse("input", "input is missing.");
  const json::array* list = value->if_array();
  // One text, or the ids of one text.
  if (list == nullptr || list->empty() || list->front().is_number()) {
    return read_input(*value, "input", body.errors(), to);
  }
  if (list->size() > kMaxEmbedInputs) {
    return body.refuse(
        "input", "input has " + std::to_string(list->size()) + " texts; at most 2048 are allowed.");
  }
  to.reserve(list->size());
  for (std::size_t i = 0; i < list->size() && !body.errors().any(); ++i) {
    read_input((*list)[i], "input[" + std::to_string(i) + "]", body.errors(), to);
  }
}

// Whether the answer may fit: base64 has 4 characters of 3 bytes, and no number as text has less
// than one, and a comma.
bool may_fit(const EmbeddingRequest& request) {
  const std::uint64_t length = request.embed.dimensions.value_or(0);
  const std::uint64_t least = request.base64 ? (length * sizeof(float) + 2) / 3 * 4 : 2 * length;
  return least <= kMaxWholeAnswer / std::max<std::size_t>(request.embed.inputs.size(), 1);
}

}  // namespace

Error too_many_embeddings(std::string param, std::size_t count, std::size_t length) {
  ErrorExtras extras;
  extras.param = std::move(param);
  return {Reason::kInvalidArgument,
          "Vectors of " + std::to_string(count) + " inputs with " + std::to_string(length) +
              " numbers each are more than the 64 MiB that an answer may have. Ask for fewer "
              "inputs at once, for fewer dimensions, or with the encoding_format base64.",
          std::move(extras)};
}

Result<EmbeddingRequest> read_embedding_request(const json::object& object) {
  FirstError errors;
  const Fields body(object, "", errors);
  EmbeddingRequest request;
  read_names(body, request.embed.model, request.embed.user);
  read_inputs(body, request.embed.inputs);
  const std::string encoding = body.text("encoding_format").value_or("float");
  if (encoding != "float" && encoding != "base64") {
    body.refuse_value("encoding_format", R"("float" or "base64")", *body.find("encoding_format"));
  }
  request.base64 = encoding == "base64";
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (const std::optional<std::int64_t> kept = body.whole("dimensions", 1, kMost)) {
    request.embed.dimensions = static_cast<std::uint32_t>(*kept);
  }
  if (Status ok = errors.status(); !ok) return fail(ok.error());
  if (Status ok = validate(request.embed); !ok) return fail(with_openai_names(ok.error()));
  if (!may_fit(request)) {
    return fail(
        too_many_embeddings("dimensions", request.embed.inputs.size(), *request.embed.dimensions));
  }
  return request;
}

}  // namespace berth::gateway::openai
