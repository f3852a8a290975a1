#pragma once

#include <string>

#include "common/result.h"
#include "supervisor/core/caller.h"

namespace berth::core {

// The error as this caller may see it, in every protocol. Its reason never changes, nor what
// becomes a header (how soon to ask again), so that status and headers are the same for everybody
// (I12).
// - Admins see all of it.
// - No client sees log lines, command lines or paths.
// - An un-entitled client does not see what the server does besides: where the message is about the
//   server and not about his own request he gets the error table's sentence, without holder,
//   memory, failure, numbers and names of other models.
Error for_caller(const Error& error, const Caller& caller);

// Whether he may know why loads fail and what they take: class, exit, memory.
inline bool may_know_failures(const Caller& caller) {
  return caller.admin() || caller.entitled;
}

// A sentence about the server, as why a load failed, wherever it stands: what for_caller() leaves
// of it as the message of such an error. An empty one stays empty.
std::string text_for(const std::string& text, Reason reason, const Caller& caller);

// What is wrong with a model, which may name files; empty: nothing is.
std::string model_problem_for(const std::string& problem, const Caller& caller);

// What an event and the log say of the error. A prompt must never stand there, and messages about a
// request quote what the client sent, those of templates and programs what they will: of these only
// the error table's sentence is told, and which field was wrong.
std::string message_for_log(const Error& error);

}  // namespace berth::core
