#include "worker/engine/llama_templates.h"

#include <llama.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <vector>

namespace berth::worker {
namespace {

constexpr std::size_t kFrameBytes = 128;  // about what a template adds to a message
constexpr auto kMostBytes = static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max());

std::vector<std::string> template_names() {
  const auto count = llama_chat_builtin_templates(nullptr, 0);
  if (count <= 0) return {};
  std::vector<const char*> names(static_cast<std::size_t>(count));
  llama_chat_builtin_templates(names.data(), names.size());
  return {names.begin(), names.end()};
}

bool has_template(std::string_view name) {
  const auto names = template_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

tl::unexpected<Error> failed(const char* why) {
  return fail(Reason::kTemplateFailed, why);
}

Result<std::string> apply(const std::string& source, const std::vector<llama_chat_message>& chat,
                          bool add_generation_prompt, std::size_t estimate) {
  std::string text(estimate, '\0');
  for (int round = 0; round < 2; ++round) {
    const auto size =
        llama_chat_apply_template(source.c_str(), chat.data(), chat.size(), add_generation_prompt,
                                  text.data(), static_cast<std::int32_t>(text.size()));
    if (size < 0) return failed("libllama has no chat template of this kind.");
    const bool fits = static_cast<std::size_t>(size) <= text.size();
    text.resize(static_cast<std::size_t>(size));
    if (fits) return text;
  }
  return failed("libllama's chat template does not say how long its prompt is.");
}

Result<std::string> apply_template(const std::string& source, std::span<const FlatMessage> messages,
                                   bool add_generation_prompt) {
  std::vector<llama_chat_message> chat;
  std::size_t bytes = kFrameBytes;
  for (const auto& message : messages) {
    if (message.content.find('\0') != std::string::npos) {
      return failed("libllama's chat templates take no text with a zero character.");
    }
    chat.push_back({message.role.c_str(), message.content.c_str()});
    bytes += message.role.size() + message.content.size() + kFrameBytes;
  }
  if (bytes > kMostBytes) return failed("The messages are too long for a chat template.");
  try {
    return apply(source, chat, add_generation_prompt, bytes);
  } catch (const std::exception&) {
    return failed("libllama's chat template cannot take these messages.");
  }
}

}  // namespace

BuiltinTemplates llama_builtin_templates() {
  return {&has_template, &template_names, &apply_template};
}

}  // namespace berth::worker
