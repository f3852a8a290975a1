#pragma once

#include <vector>

#include "worker/engine/builtin_templates.h"
#include "worker/template/control_texts.h"

namespace berth::worker {

// Messages with the texts of control tokens in them between marks.
struct FlatConversation {
  std::vector<FlatMessage> messages;
  Marks marks;
};

}  // namespace berth::worker
