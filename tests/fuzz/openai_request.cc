// Any bytes are the body of one of OpenAI's requests: what comes out is a request that the
// gateway's own checks take and whose JSON parts parse again, or an error that can be shown. The
// first byte says which: 'p' a completion, 'e' an embedding, 'm' a message of an error of the
// worker's, else a chat.

#include <boost/json/parse.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>

#include "common/text.h"
#include "supervisor/gateway/openai/json_body.h"
#include "supervisor/gateway/openai/requests.h"
#include "supervisor/gateway/validate.h"

namespace {

namespace openai = berth::gateway::openai;
namespace json = boost::json;

void require(bool truth) {
  if (!truth) std::abort();
}

void check_error(const berth::Error& error) {
  require(error.reason == berth::Reason::kInvalidArgument ||
          error.reason == berth::Reason::kBodyTooLarge);
  require(!error.message.empty());
  require(!berth::first_invalid_utf8(error.message));
  if (error.extras) require(!berth::first_invalid_utf8(error.extras->param));
}

void check_json(const std::string& text, json::kind kind) {
  if (text.empty()) return;
  json::parse_options options;
  options.max_depth = openai::kMaxDepth;
  json::error_code wrong;
  const json::value value = json::parse(text, wrong, {}, options);
  require(!wrong);
  require(value.kind() == kind);
}

void check_request(const openai::TextRequest& request) {
  require(berth::gateway::validate(request.generate).has_value());
  require(!request.generate.model.empty());
  require(request.generate.user.size() <= berth::gateway::kMaxUserBytes);
  require(!request.generate.max_tokens || *request.generate.max_tokens > 0);
  for (const berth::core::LogitBias& bias : request.generate.sampling.logit_bias) {
    require(bias.token >= 0 && std::abs(bias.bias) <= 100);
  }
  const auto* chat = std::get_if<berth::core::ChatInput>(&request.generate.input);
  if (chat == nullptr) return;
  check_json(chat->messages_json, json::kind::array);
  check_json(chat->tools_json, json::kind::array);
  check_json(chat->template_variables_json, json::kind::object);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.empty()) return 0;
  if (bytes.front() == 'm') {
    const std::string message(bytes.substr(1));
    openai::with_openai_names(berth::invalid_argument("chat.messages_json", message).value());
    return 0;
  }
  const auto body = openai::parse_body(bytes.substr(1));
  if (!body) {
    check_error(body.error());
    return 0;
  }
  const auto model = openai::read_model(*body);
  if (!model) check_error(model.error());
  if (bytes.front() == 'e') {
    const auto request = openai::read_embedding_request(*body);
    if (!request) check_error(request.error());
    if (request) require(!request->embed.inputs.empty() && model.has_value());
    return 0;
  }
  const auto request = bytes.front() == 'p' ? openai::read_completion_request(*body)
                                            : openai::read_chat_request(*body);
  if (request) {
    require(model.has_value());
    check_request(*request);
  } else {
    check_error(request.error());
  }
  return 0;
}
