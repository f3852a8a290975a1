#pragma once

#include <string>

namespace berth::worker {

// A piece of a prompt. In a literal one the texts of control tokens are only text.
struct PromptPart {
  std::string text;
  bool literal = false;
};

}  // namespace berth::worker
