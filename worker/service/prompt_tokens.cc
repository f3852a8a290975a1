#include "worker/service/prompt_tokens.h"

#include <utility>

#include "worker/service/invalid_argument.h"
#include "worker/service/preparer.h"
#include "worker/service/request_check.h"

namespace berth::worker {
namespace {

constexpr std::size_t kTailBytes = 256;

std::string tail_of(const std::vector<PromptPart>& parts) {
  std::string tail;
  for (auto part = parts.rbegin(); part != parts.rend() && tail.size() < kTailBytes; ++part) {
    const auto wanted = kTailBytes - tail.size();
    const auto& text = part->text;
    tail.insert(0, text, text.size() > wanted ? text.size() - wanted : 0, wanted);
  }
  return tail;
}

template <typename CheckLength>
Result<ChatPrompt> tokens_of_chat(Preparer& preparer, const v1::ChatInput& chat,
                                  const ChatTools& tools, const CheckLength& check_length) {
  const auto prompt = preparer.render(chat, tools.choice.kind != ToolChoice::Kind::kNone);
  if (!prompt) return fail(prompt.error());
  const auto& parts = prompt->parts;
  if (auto fits = check_length(parts); !fits) return fail(fits.error());
  auto tokens = preparer.engine().tokenize_parts(parts, true);
  if (!tokens) return fail(tokens.error());
  return ChatPrompt{std::move(*tokens), tail_of(parts), prompt->tools_described};
}

}  // namespace

Result<std::vector<TokenId>> text_tokens(Preparer& preparer, const std::string& text,
                                         std::string_view param) {
  if (auto fits = preparer.check_length(text); !fits) return fail(fits.error());
  if (auto checked = check_utf8(text, param); !checked) return fail(checked.error());
  return preparer.engine().tokenize(text, true);
}

Result<ChatPrompt> chat_tokens(Preparer& preparer, const v1::ChatInput& chat,
                               const ChatTools& tools) {
  return tokens_of_chat(preparer, chat, tools,
                        [&](const auto& parts) { return preparer.check_length(parts); });
}

Result<ChatPrompt> chat_tokens(Preparer& preparer, const v1::ChatInput& chat,
                               const ChatTools& tools, std::size_t max_bytes) {
  return tokens_of_chat(preparer, chat, tools, [&](const auto& parts) -> Status {
    std::size_t bytes = 0;
    for (const auto& part : parts) bytes += part.text.size();
    if (bytes <= max_bytes) return {};
    return invalid_argument("chat", "The chat's prompt has " + std::to_string(bytes) +
                                        " bytes; at most " + std::to_string(max_bytes) +
                                        " are allowed.");
  });
}

}  // namespace berth::worker
