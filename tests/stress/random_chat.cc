#include "tests/stress/random_chat.h"

#include <boost/json.hpp>
#include <string>

#include "tests/stress/random_schema.h"
#include "tests/stress/random_text.h"

namespace berth::stress {
namespace {

namespace json = boost::json;

json::value random_content(Random& random) {
  const auto text = text_of_any_length(random);
  if (random.percent(85)) return json::value(text);
  return json::array{json::object{{"type", "text"}, {"text", text}},
                     json::object{{"type", "text"}, {"text", random_text(random, 30)}}};
}

json::object random_message(Random& random, std::size_t index) {
  const auto role = index == 0 && random.percent(30)
                        ? one_text(random, {"system", "developer"})
                        : one_text(random, {"user", "user", "user", "assistant", "tool"});
  json::object message{{"role", role}, {"content", random_content(random)}};
  if (role == "assistant" && random.percent(30)) {
    message["tool_calls"] = json::array{json::object{
        {"id", "call_" + std::to_string(index)},
        {"type", "function"},
        {"function",
         json::object{{"name", "tool0"}, {"arguments", json::serialize(random_json(random, 2))}}}}};
    if (random.percent(50)) message["content"] = nullptr;
  }
  if (role == "tool") message["tool_call_id"] = "call_0";
  return message;
}

// Mostly of an object, which is what a tool takes; now and then they leave open what it is, or
// allow more.
json::object random_parameters(Random& random) {
  json::object parameters{{"type", "object"}};
  json::object properties;
  const auto members = random.below(4);
  for (std::uint64_t k = 0; k < members; ++k) {
    properties["a" + std::to_string(k)] = random_schema(random, 2);
  }
  parameters["properties"] = properties;
  if (members > 0 && random.percent(60)) parameters["required"] = json::array{"a0"};
  if (random.percent(70)) return parameters;
  switch (random.below(6)) {
    case 0:
      return {};
    case 1:
      return {{"description", "anything"}};
    case 2:
      parameters["type"] = json::array{"object", "null"};
      return parameters;
    case 3:
      parameters["nullable"] = true;
      return parameters;
    case 4:
      parameters.erase("type");
      return parameters;
    default:
      return {{"anyOf", json::array{parameters, json::object{{"type", "null"}}}}};
  }
}

json::array random_tools(Random& random) {
  json::array tools;
  const auto count = random.between(1, 5);
  for (std::uint64_t i = 0; i < count; ++i) {
    json::object function{{"name", "tool" + std::to_string(i)}};
    if (random.percent(60)) function["description"] = random_text(random, 60);
    if (random.percent(80)) function["parameters"] = random_parameters(random);
    tools.emplace_back(json::object{{"type", "function"}, {"function", function}});
  }
  return tools;
}

std::string random_choice(Random& random, std::size_t tools) {
  switch (random.below(6)) {
    case 0:
      return "\"auto\"";
    case 1:
      return "\"none\"";
    case 2:
      return "\"required\"";
    case 3:
      return R"({"type": "function", "function": {"name": "tool)" +
             std::to_string(random.below(tools)) + "\"}}";
    case 4:
      return "null";
    default:
      return "";
  }
}

}  // namespace

v1::ChatInput random_chat(Random& random) {
  v1::ChatInput chat;
  json::array messages;
  const auto count = any_size(random, 1, random.percent(3) ? 200 : 8);
  for (std::size_t i = 0; i < count; ++i) messages.emplace_back(random_message(random, i));
  chat.set_messages_json(json::serialize(messages));
  if (random.percent(45)) {
    const auto tools = random_tools(random);
    chat.set_tools_json(json::serialize(tools));
    chat.set_tool_choice_json(random_choice(random, tools.size()));
  }
  if (random.percent(10)) chat.set_add_generation_prompt(random.percent(50));
  if (random.percent(15)) {
    chat.set_template_variables_json(R"({"enable_thinking": false, "x": [1, "y"]})");
  }
  if (random.percent(10)) chat.set_raw_answer(true);
  return chat;
}

void spoil_chat(Random& random, v1::ChatInput& chat) {
  switch (random.below(12)) {
    case 0:
      chat.set_messages_json("");
      break;
    case 1:
      chat.set_messages_json(broken_text(random));
      break;
    case 2:
      chat.set_messages_json(json::serialize(random_json(random, 3)));
      break;
    case 3:
      chat.set_messages_json("[]");
      break;
    case 4:
      chat.set_messages_json(std::string(any_size(random, 65, 200'000), '['));
      break;
    case 5:
      chat.set_messages_json(R"([{"role": "user", "content": [{"type": "image_url",
                                 "image_url": {"url": "data:,x"}}]}])");
      break;
    case 6:
      chat.set_messages_json("[{\"role\": \"user\", \"content\": \"\xff\"}]");
      break;
    case 7:
      chat.set_tools_json(one_of<std::string>(
          random, {"{}", "[1]", R"([{"type": "function", "function": {"name": ""}}])",
                   R"([{"function": {"name": "a"}}, {"function": {"name": "a"}}])",
                   std::string(500, '['), broken_text(random)}));
      break;
    case 8:
      chat.set_tool_choice_json(one_of<std::string>(
          random, {"\"any\"", "{}", "1", "\"", R"({"function": {"name": "nobody"}})",
                   std::string(5000, ' ')}));
      break;
    case 9:
      chat.clear_tools_json();
      chat.set_tool_choice_json("\"required\"");
      break;
    case 10:
      chat.set_template_variables_json(
          one_of<std::string>(random, {"[]", "x", "{\"a\": \"\xff\"}", std::string(300, '[')}));
      break;
    default:
      chat.set_messages_json(R"([{"role": ")" + random_text(random, 10) + R"("}])");
  }
}

}  // namespace berth::stress
