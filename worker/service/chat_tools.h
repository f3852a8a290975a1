#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "berth/v1/inference.pb.h"
#include "common/result.h"

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
  std::vector<std::string> names;  // of the tools, in their order; empty with kNone
};

// The tools of a chat and what its answer does with them. Whether a tool's other members make sense
// is for the template to say. Errors: kInvalidArgument with the field, which tool, and what to do.
Result<ChatTools> check_chat_tools(const v1::ChatInput& chat);

}  // namespace berth::worker
