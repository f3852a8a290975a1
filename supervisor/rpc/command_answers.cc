#include "supervisor/rpc/command_answers.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <boost/system/error_code.hpp>
#include <limits>

namespace berth::rpc {
namespace {

namespace json = boost::json;

constexpr std::size_t kLongestName = 512;
constexpr std::string_view kProbeText = "Hi";

// Null where it is no JSON; the depth is bounded by the parser's own limit of 32.
json::value parse(std::string_view body) {
  boost::system::error_code failed;
  json::value value = json::parse({body.data(), body.size()}, failed);
  return failed ? json::value() : value;
}

const json::value* member(const json::value& value, std::string_view key) {
  const json::object* object = value.if_object();
  return object == nullptr ? nullptr : object->if_contains({key.data(), key.size()});
}

// The first element of an array that is a member; null where there is none.
const json::value* first_of(const json::value& value, std::string_view key) {
  const json::value* found = member(value, key);
  const json::array* array = found == nullptr ? nullptr : found->if_array();
  return array == nullptr || array->empty() ? nullptr : &array->front();
}

std::uint32_t tokens(const json::value* value) {
  if (value == nullptr) return 0;
  boost::system::error_code failed;
  const auto number = value->to_number<std::uint32_t>(failed);
  return failed ? 0 : number;
}

std::string request(const std::string& model, std::string_view key, json::value input,
                    bool one_token) {
  json::object body;
  body["model"] = model;
  body[json::string_view(key.data(), key.size())] = std::move(input);
  if (one_token) {
    body["max_tokens"] = 1;
    body["stream"] = false;
  }
  return json::serialize(body);
}

}  // namespace

std::optional<ServedModel> read_models(std::string_view body) {
  const json::value value = parse(body);
  const json::value* first = first_of(value, "data");
  if (first == nullptr) return std::nullopt;
  const json::value* id = member(*first, "id");
  if (id == nullptr || !id->is_string() || id->get_string().empty() ||
      id->get_string().size() > kLongestName) {
    return std::nullopt;
  }
  ServedModel served;
  served.name = std::string(id->get_string());
  served.window = tokens(member(*first, "max_model_len"));  // vLLM and SGLang
  return served;
}

std::string completion_request(const std::string& model) {
  return request(model, "prompt", json::value(std::string(kProbeText)), true);
}

std::string chat_request(const std::string& model) {
  json::object message;
  message["role"] = "user";
  message["content"] = std::string(kProbeText);
  json::array messages;
  messages.emplace_back(std::move(message));
  return request(model, "messages", std::move(messages), true);
}

std::string embedding_request(const std::string& model) {
  return request(model, "input", json::value(std::string(kProbeText)), false);
}

bool proves_completion(std::string_view body) {
  const json::value value = parse(body);
  const json::value* choice = first_of(value, "choices");
  return choice != nullptr && choice->is_object();
}

bool proves_embedding(std::string_view body) {
  const json::value value = parse(body);
  const json::value* item = first_of(value, "data");
  if (item == nullptr) return false;
  const json::value* vector = member(*item, "embedding");
  if (vector == nullptr) return false;
  // Base64 where the program has that as its default.
  if (const json::string* text = vector->if_string()) return !text->empty();
  const json::array* numbers = vector->if_array();
  return numbers != nullptr && !numbers->empty() && numbers->front().is_number();
}

}  // namespace berth::rpc
