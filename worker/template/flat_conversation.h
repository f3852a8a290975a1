#pragma once

#include <string>
#include <vector>

#include "worker/template/control_texts.h"

namespace berth::worker {

// A message for libllama's own templates, which know only texts.
struct FlatMessage {
  std::string role;
  std::string content;
};

// Messages with the texts of control tokens in them between marks.
struct FlatConversation {
  std::vector<FlatMessage> messages;
  Marks marks;
};

}  // namespace berth::worker
