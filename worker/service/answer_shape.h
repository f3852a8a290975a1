#pragma once

#include "berth/v1/inference.pb.h"
#include "common/result.h"
#include "worker/answer/answer_form.h"
#include "worker/engine/sampling.h"
#include "worker/service/chat_tools.h"

namespace berth::worker {

// Which of the things that shape an answer a request has, and whether they go together. Cheap.
// Errors: kInvalidArgument, says which two do not and what to leave out.
Status check_combination(const v1::GenerateRequest& request, const ChatTools& tools);

// The grammar of an answer's format: any JSON object, a JSON schema, or a grammar of the client's.
// Sets `sampling.grammar`; nothing where `format` is not set. May take long; any thread. Errors:
// kInvalidArgument with the field, and the keyword with its place or the line of the grammar.
Status apply_format(const v1::OutputFormat& format, SamplingSettings& sampling);

// Lets the model think first: where the prompt has opened its reasoning, the grammar applies from
// the reasoning's end on. gpt-oss opens its channels itself: there the channels become a part of
// the grammar of `format`, so that none of its answers comes past it. Errors: kInvalidArgument
// where the grammar becomes too large by that.
Status begin_after_reasoning(const AnswerForm& form, const v1::OutputFormat& format,
                             SamplingSettings& sampling);

}  // namespace berth::worker
