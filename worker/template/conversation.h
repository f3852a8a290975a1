#pragma once

#include <string_view>

#include "common/result.h"
#include "worker/template/chat_request.h"
#include "worker/template/json_input.h"

namespace berth::worker {

// Where a tool call whose arguments came as a text keeps that text, beside `arguments`, until the
// adapter has chosen one of the two: a template that prints the text gets it byte by byte.
constexpr const char* kArgumentsText = "arguments_text";

// A ChatRequest, checked and in one form: every message has a role and a content, which is a
// string, or null beside tool calls; tool calls have a type, a name and arguments that are an
// object (or a string where they are no valid JSON object).
struct Conversation {
  Json messages;
  Json tools;      // an array; null: none
  Json variables;  // an object; null: none
  bool add_generation_prompt = true;
  bool tools_described = false;  // in a message, by the adapter
};

// Reads a request: joins text parts, names the tool of a result that only has its call's id.
// Roles are OpenAI's, or one that `template_source` names in quotes. `developer` becomes `system`
// for a template that does not know it. Any thread.
// Errors: kInvalidArgument, says which message is wrong and how ("messages[2].content[0]…").
Result<Conversation> read_conversation(const ChatRequest& request,
                                       std::string_view template_source);

}  // namespace berth::worker
