#pragma once

#include <vector>

#include "worker/engine/prompt_part.h"

namespace berth::worker {

// What became of a conversation.
struct RenderedPrompt {
  std::vector<PromptPart> parts;  // several where texts of clients contain control texts
  // The template shows no tools, so that they were described in a message, which asks for calls as
  // plain JSON, whatever marks the template has for calls.
  bool tools_described = false;
};

}  // namespace berth::worker
