#include "supervisor/core/waiting_bytes.h"

#include <variant>

#include "supervisor/core/embedding.h"
#include "supervisor/core/generation.h"
#include "supervisor/core/tokenizing.h"

namespace berth::core {
namespace {

constexpr double kRetrySeconds = 5;

struct BytesOf {
  std::uint64_t operator()(const ChatInput& chat) const {
    return chat.messages_json.size() + chat.tools_json.size() + chat.tool_choice_json.size() +
           chat.template_variables_json.size();
  }
  std::uint64_t operator()(const PromptInput& prompt) const { return prompt.text.size(); }
  std::uint64_t operator()(const TextInput& text) const { return text.text.size(); }
  std::uint64_t operator()(const TokenInput& tokens) const {
    return tokens.ids.size() * sizeof tokens.ids.front();
  }
  std::uint64_t operator()(const JsonSchemaFormat& format) const { return format.schema.size(); }
  std::uint64_t operator()(const GrammarFormat& format) const { return format.gbnf.size(); }
  std::uint64_t operator()(const JsonObjectFormat& /*format*/) const { return 0; }
  std::uint64_t operator()(const std::monostate& /*format*/) const { return 0; }
};

}  // namespace

std::uint64_t bytes_of(const GenerateRequest& request) {
  return std::visit(BytesOf{}, request.input) + std::visit(BytesOf{}, request.format);
}

std::uint64_t bytes_of(const EmbedRequest& request) {
  std::uint64_t bytes = 0;
  for (const EmbedInput& input : request.inputs) bytes += std::visit(BytesOf{}, input);
  return bytes;
}

std::uint64_t bytes_of(const TokenizeRequest& request) {
  return std::visit(BytesOf{}, request.input);
}

std::uint64_t bytes_of(const DetokenizeRequest& request) {
  return request.ids.size() * sizeof request.ids.front();
}

Result<HeldBytes> WaitingBytes::take(const std::string& tenant, std::uint64_t bytes) {
  if (bytes <= kSmall) return HeldBytes{};
  const auto own = held_->by_tenant.find(tenant);
  const std::uint64_t had = own == held_->by_tenant.end() ? 0 : own->second;
  if (held_->all + bytes > held_->most || had + bytes > held_->most / 2) {
    ErrorExtras extras;
    extras.retry_after_seconds = kRetrySeconds;
    return fail(Error(Reason::kQueueFull,
                      "Too many large requests wait for their models. Try again soon.",
                      std::move(extras)));
  }
  held_->all += bytes;
  held_->by_tenant[tenant] += bytes;
  // Its end gives them back; what it points to is of no interest.
  std::shared_ptr<void> token(held_.get(), [held = held_, tenant, bytes](void* /*unused*/) {
    held->all -= bytes;
    const auto of = held->by_tenant.find(tenant);
    if ((of->second -= bytes) == 0) held->by_tenant.erase(of);
  });
  return HeldBytes(std::move(token));
}

}  // namespace berth::core
