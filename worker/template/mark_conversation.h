#pragma once

#include <cstddef>

#include "common/result.h"
#include "worker/template/control_texts.h"
#include "worker/template/conversation.h"

namespace berth::worker {

// Most control texts in one request.
constexpr std::size_t kMaxControlTexts = 10000;

// Marks the texts of control tokens in every string and key that came from the client. Returns the
// marks; empty ones where there was nothing to mark.
// Errors: kInvalidArgument where there are more than kMaxControlTexts; kInternal without random
// numbers.
Result<Marks> mark_control_texts(Conversation& conversation, const ControlTexts& texts);

}  // namespace berth::worker
