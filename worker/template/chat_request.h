#pragma once

#include <string_view>

namespace berth::worker {

// A request to render, as it came from a client.
struct ChatRequest {
  std::string_view messages_json;   // an array of objects with a role and a content, as OpenAI's
  std::string_view tools_json;      // an array; empty: none
  std::string_view variables_json;  // an object, variables of the template; empty: none
  bool add_generation_prompt = true;
};

}  // namespace berth::worker
