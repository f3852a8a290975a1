#include "worker/template/input_bounds.h"

#include <string>

namespace berth::worker {

Status check_json_bytes(std::string_view text, std::string_view param, std::string_view what) {
  if (text.size() <= JsonBounds::kBytes) return {};
  return invalid_argument(param, std::string(what) + " have " + std::to_string(text.size()) +
                                     " bytes; at most " + std::to_string(JsonBounds::kBytes) +
                                     " (16 MiB) are allowed. Send fewer or shorter ones.");
}

Status check_request_bytes(const ChatRequest& request) {
  if (auto fits = check_json_bytes(request.messages_json, kMessagesParam, "The messages"); !fits) {
    return fits;
  }
  if (auto fits = check_json_bytes(request.tools_json, kToolsParam, "The tools"); !fits) {
    return fits;
  }
  return check_json_bytes(request.variables_json, kVariablesParam, "The template's variables");
}

Status check_template_bytes(std::string_view source) {
  if (source.size() <= TemplateBounds::kBytes) return {};
  return fail(Reason::kTemplateFailed,
              "The model's chat template has " + std::to_string(source.size()) +
                  " bytes; at most " + std::to_string(TemplateBounds::kBytes) +
                  " (256 KiB) are allowed. Set the model's chat_template to a shorter one.");
}

Status check_vocabulary_texts(const TemplateSetup& setup) {
  const auto& texts = setup.control_texts;
  if (texts.size() > ControlBounds::kTexts) {
    return fail(Reason::kTemplateFailed,
                "The model's vocabulary has " + std::to_string(texts.size()) +
                    " control tokens; chats can keep the texts of at most " +
                    std::to_string(ControlBounds::kTexts) + " apart. Send a prompt or tokens.");
  }
  auto bytes = setup.bos.size() + setup.eos.size();
  for (const auto& text : texts) bytes += text.size();
  if (bytes <= ControlBounds::kBytes) return {};
  return fail(Reason::kTemplateFailed, "The texts of the model's control tokens have " +
                                           std::to_string(bytes) + " bytes; chats can have " +
                                           std::to_string(ControlBounds::kBytes) +
                                           " (16 MiB) at most. Send a prompt or tokens.");
}

}  // namespace berth::worker
