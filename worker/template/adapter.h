#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "worker/template/conversation.h"

namespace berth::worker {

// Brings conversations into the form that one template can render. Which one that is, is found out
// by trial: the template renders small conversations, and it is looked at whether what stood in
// them comes out. Each trial is made when a conversation first needs its result, and only once.
//
//  - arguments of tool calls as an object or as a text of JSON;
//  - content as a list of parts; beside tool calls an empty text instead of none, or none instead
//  of
//    an empty text;
//  - ids of tool calls of nine letters and digits;
//  - a system message within the next user message, where there is no system role;
//  - tools described in the system message, calls as JSON in the content, results as JSON of the
//    user's, where the template knows no tools, be it that it has a form of its own for calls.
//
// Owned by a ChatTemplate; the same thread.
class Adapter {
 public:
  // Renders as the template does without any adaption; nothing where it fails.
  using Render = std::function<std::optional<std::string>(const Json& messages, const Json& tools)>;

  explicit Adapter(Render render) : render_(std::move(render)) {}

  void adapt(Conversation& conversation);

 private:
  enum class Form { kObject, kText };
  using Answer = std::optional<bool>;

  bool ask(Answer& answer, const std::function<bool()>& trial);
  [[nodiscard]] std::string rendered(const Json& messages, const Json& tools = Json()) const;
  [[nodiscard]] bool shows(const Json& messages, std::string_view needle,
                           const Json& tools = Json()) const;

  bool wants_parts();
  bool knows_system();
  bool knows_tools();
  bool knows_calls();
  bool knows_results();
  bool takes_no_content();
  bool wants_no_content();
  bool wants_short_ids();
  Form form_of_arguments();

  void adapt_tools(Conversation& conversation);
  void adapt_calls(Json& message, bool as_text);
  void adapt_arguments(Json& function);
  void adapt_system(Json& messages);

  Render render_;
  Answer wants_parts_;
  Answer knows_system_;
  Answer knows_tools_;
  Answer knows_results_;
  Answer takes_no_content_;
  Answer wants_no_content_;
  Answer wants_short_ids_;
  std::optional<std::optional<Form>> form_;  // none: tool calls are not shown
};

}  // namespace berth::worker
