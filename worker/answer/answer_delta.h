#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace berth::worker {

// The next piece of a tool call, as OpenAI's `delta.tool_calls` has it.
struct ToolCallDelta {
  std::uint32_t index = 0;  // of the call within the answer, from 0
  std::string id;           // only in the first piece of a call, as is the name
  std::string name;
  std::string arguments;  // the next piece of a JSON text
  bool operator==(const ToolCallDelta&) const = default;
};

// What a piece of an answer's text turned out to be. Pieces are appended; clear() keeps memory.
struct AnswerDelta {
  std::string content;
  std::string reasoning;
  std::vector<ToolCallDelta> tool_calls;

  [[nodiscard]] bool empty() const {
    return content.empty() && reasoning.empty() && tool_calls.empty();
  }
  void clear() {
    content.clear();
    reasoning.clear();
    tool_calls.clear();
  }
};

}  // namespace berth::worker
