#pragma once

#include <utility>

#include "worker/template/conversation.h"
#include "worker/template/template_trials.h"

namespace berth::worker {

// Brings conversations into the form that one template can render, as TemplateTrials finds out:
//
//  - arguments of tool calls as an object or as a text of JSON;
//  - content as a list of parts; beside tool calls an empty text instead of none, or none instead
//    of an empty text;
//  - ids of tool calls of nine letters and digits;
//  - a system message within the next user message, where there is no system role;
//  - tools described in the system message, calls as JSON in the content, results as JSON of the
//    user's, where the template knows no tools, be it that it has a form of its own for calls.
//
// Owned by a ChatTemplate; the same thread.
class Adapter {
 public:
  explicit Adapter(TemplateTrials::Render render) : trials_(std::move(render)) {}

  void adapt(Conversation& conversation);

 private:
  void adapt_tools(Conversation& conversation);
  void adapt_calls(Json& message, bool as_text);
  void adapt_arguments(Json& function);
  void adapt_system(Json& messages);

  TemplateTrials trials_;
};

}  // namespace berth::worker
