#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "worker/template/json_input.h"

namespace berth::worker {

// A message as templates take it, and its content as a list of one part.
Json make_message(const char* role, Json content);
Json content_parts(Json text);

// What one template can render, found out by trial: it renders small conversations, and it is
// looked at whether what stood in them comes out. Each trial is made when its result is first asked
// for, and only once. Owned by an Adapter; the same thread.
class TemplateTrials {
 public:
  // Renders as the template does without any adaption; nothing where it fails.
  using Render = std::function<std::optional<std::string>(const Json& messages, const Json& tools)>;
  enum class Form : std::uint8_t { kObject, kText };

  explicit TemplateTrials(Render render) : render_(std::move(render)) {}

  bool wants_parts();  // content as a list, not as a text
  bool knows_system();
  bool knows_tools();
  bool knows_calls();
  bool knows_results();
  bool takes_no_content();  // null beside calls
  bool wants_no_content();  // null, and no empty text, beside calls
  bool wants_short_ids();   // of calls, nine letters and digits
  Form form_of_arguments();

 private:
  using Answer = std::optional<bool>;

  static bool ask(Answer& answer, const std::function<bool()>& trial);
  [[nodiscard]] std::string rendered(const Json& messages, const Json& tools = Json()) const;
  [[nodiscard]] bool shows(const Json& messages, std::string_view needle,
                           const Json& tools = Json()) const;

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
