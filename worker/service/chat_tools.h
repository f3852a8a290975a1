#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "berth/v1/inference.pb.h"
#include "common/result.h"
#include "worker/grammar/tool_call_schema.h"

namespace berth::worker {

// Whether the answer to a chat calls a tool.
struct ToolChoice {
  enum class Kind : std::uint8_t {
    kAuto,      // as the model likes
    kNone,      // it does not hear of the tools
    kRequired,  // at least one, whichever
    kNamed,     // this one
  };
  Kind kind = Kind::kAuto;
  std::string name;  // of kNamed
  [[nodiscard]] bool is_forced() const { return kind == Kind::kRequired || kind == Kind::kNamed; }
};

struct ChatTools {
  ToolChoice choice;
  std::vector<Tool> tools;  // in their order; none with kNone
  [[nodiscard]] std::vector<std::string> names() const;
};

// The tools of a chat and what its answer does with them. What is allowed does not depend on the
// choice, but for the schemas of parameters that become a grammar. Errors: kInvalidArgument with
// the field, which tool, and what to do.
Result<ChatTools> check_chat_tools(const v1::ChatInput& chat);

}  // namespace berth::worker
