#include "supervisor/gateway/openai/text_fields.h"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <limits>
#include <utility>

#include "supervisor/gateway/openai/json_body.h"
#include "supervisor/gateway/validate.h"

namespace berth::gateway::openai {
namespace {

namespace json = boost::json;

void read_stop(const Fields& body, std::vector<std::string>& to) {
  const json::value* value = body.find("stop");
  if (value == nullptr) return;
  if (value->is_string()) {
    to.push_back(*body.text("stop"));
    return;
  }
  const json::array* list = value->if_array();
  if (list == nullptr) return body.refuse_value("stop", "a text or a list of texts", *value);
  if (list->size() > kMaxStops) {
    return body.refuse(
        "stop", "stop has " + std::to_string(list->size()) + " texts; at most 16 are allowed.");
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    const json::string* text = (*list)[i].if_string();
    const std::string name = "stop[" + std::to_string(i) + "]";
    if (text == nullptr) return body.refuse_value(name, "a text", (*list)[i]);
    if (text->empty()) return body.refuse(name, name + " is empty.");
    to.emplace_back(text->data(), text->size());
  }
}

// Only one answer is made for a request.
void check_one(const Fields& body, std::string_view name) {
  const json::value* value = body.find(name);
  if (value == nullptr || as_whole(*value) == 1) return;
  body.refuse_value(name, "1, since one answer is made for each request", *value);
}

std::optional<std::uint32_t> read_max_tokens(const Fields& body, std::string_view name) {
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  const json::value* value = body.find(name);
  // What clients of llama.cpp and LM Studio send for "no bound".
  if (value != nullptr && as_whole(*value) == -1) return std::nullopt;
  const std::optional<std::int64_t> number = body.whole(name, 1, kMost);
  if (!number) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

void read_schema(const Fields& format, core::OutputFormat& to) {
  const std::optional<Fields> wrapped = format.object("json_schema");
  if (!wrapped) return format.refuse("json_schema", format.path("json_schema") + " is missing.");
  const json::value* schema = wrapped->find("schema");
  if (schema == nullptr || !(schema->is_object() || schema->is_bool())) {
    return wrapped->refuse("schema", wrapped->path("schema") + " must be a JSON Schema.");
  }
  wrapped->flag("strict");  // every schema is followed strictly
  to = core::JsonSchemaFormat{json::serialize(*schema)};
}

}  // namespace

void read_names(const Fields& body, std::string& model, std::string& user) {
  model = body.text("model").value_or("");
  if (model.empty()) {
    body.refuse("model", "No model was named. GET /v1/models lists them.");
  } else if (model.size() > kMaxModelNameBytes) {
    body.refuse("model",
                "model has " + std::to_string(model.size()) + " bytes; at most 512 are allowed.");
  }
  user = body.text("user").value_or("");
  if (user.size() > kMaxUserBytes) {
    body.refuse("user",
                "user has " + std::to_string(user.size()) + " bytes; at most 256 are allowed.");
  }
}

void read_bounds(const Fields& body, std::string_view max_tokens, TextRequest& to) {
  to.stream = body.flag("stream").value_or(false);
  if (const std::optional<Fields> options = body.object("stream_options")) {
    to.include_usage = options->flag("include_usage").value_or(false);
  }
  read_stop(body, to.generate.stop);
  check_one(body, "n");
  to.generate.max_tokens = read_max_tokens(body, "max_tokens");
  if (max_tokens == "max_tokens" || body.find(max_tokens) == nullptr) return;
  to.generate.max_tokens = read_max_tokens(body, max_tokens);
}

void read_format(const Fields& body, core::OutputFormat& to) {
  if (std::optional<std::string> grammar = body.text("grammar")) {
    to = core::GrammarFormat{*std::move(grammar)};
  }
  const std::optional<Fields> format = body.object("response_format");
  if (!format) return;
  const std::string type = format->text("type").value_or("");
  if (type == "text") return;
  if (body.find("grammar") != nullptr) {
    return body.refuse("response_format",
                       "response_format and grammar cannot shape the same answer.");
  }
  if (type == "json_object") {
    to = core::JsonObjectFormat{};
  } else if (type == "json_schema") {
    read_schema(*format, to);
  } else {
    const json::value* value = format->find("type");
    format->refuse_value("type", R"("text", "json_object" or "json_schema")",
                         value == nullptr ? json::value() : *value);
  }
}

std::vector<std::int32_t> read_token_ids(const json::array& list, const std::string& path,
                                         FirstError& errors) {
  std::vector<std::int32_t> ids;
  ids.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::optional<std::int64_t> id = as_whole(list[i]);
    if (!id || *id < 0 || *id > std::numeric_limits<std::int32_t>::max()) {
      const std::string name = path + "[" + std::to_string(i) + "]";
      errors.add(name, name + " must be the id of a token, not " + describe(list[i]) + ".");
      return {};
    }
    ids.push_back(static_cast<std::int32_t>(*id));
  }
  return ids;
}

}  // namespace berth::gateway::openai
