#pragma once

#include "common/result.h"
#include "worker/answer/answer_form.h"
#include "worker/engine/sampling.h"
#include "worker/service/chat_tools.h"

namespace berth::worker {

// `tools` has passed check_chat_tools(). Sets `sampling.grammar` so that an answer is a call of one
// of the tools, or of the named one, written as `form` has it. Forms whose names stand before the
// JSON can do that for one tool only; else `form` becomes kJson, whose answer is the call as one
// JSON object. May take long; any thread. Errors: kInvalidArgument, names the tool, or the keyword
// of its parameters and the place.
Status apply_forced_call(const ChatTools& tools, AnswerForm& form, SamplingSettings& sampling);

}  // namespace berth::worker
