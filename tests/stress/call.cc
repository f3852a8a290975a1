#include "tests/stress/call.h"

#include <google/protobuf/text_format.h>

namespace berth::stress {
namespace {

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

constexpr std::size_t kShownBytes = 3000;

std::string text_of(const google::protobuf::Message& message) {
  auto text = message.ShortDebugString();
  const auto size = text.size();
  if (size > kShownBytes) {
    text.resize(kShownBytes);
    text += "… (" + std::to_string(size) + " bytes)";
  }
  return text;
}

}  // namespace

std::string kind_of(const Call& call) {
  return std::visit(Overloaded{[](const GenerateCall& generate) -> std::string {
                                 switch (generate.request.input_case()) {
                                   case v1::GenerateRequest::kPrompt:
                                     return "text";
                                   case v1::GenerateRequest::kChat:
                                     return "chat";
                                   case v1::GenerateRequest::kTokens:
                                     return "tokens";
                                   case v1::GenerateRequest::INPUT_NOT_SET:
                                     break;
                                 }
                                 return "nothing";
                               },
                               [](const CanaryCall&) -> std::string { return "known"; },
                               [](const EmbedCall&) -> std::string { return "embed"; },
                               [](const TokenizeCall&) -> std::string { return "tokenize"; },
                               [](const DetokenizeCall&) -> std::string { return "detokenize"; }},
                    call.what);
}

std::string describe(const Call& call) {
  auto text = call.id + " " + kind_of(call);
  const auto& manners = call.manners;
  if (manners.deadline) text += " deadline " + std::to_string(manners.deadline->count()) + " ms";
  if (manners.cancel_after) {
    text += " cancelled after " + std::to_string(manners.cancel_after->count()) + " ms";
  }
  if (manners.pauses > 0) {
    text += " pauses " + std::to_string(manners.pauses) + " times " +
            std::to_string(manners.pause.count()) + " ms";
  }
  text += ": ";
  return text +
         std::visit(
             Overloaded{
                 [](const GenerateCall& generate) {
                   const auto wrong =
                       generate.wrong.empty() ? std::string() : "(wrong: " + generate.wrong + ") ";
                   return wrong + text_of(generate.request);
                 },
                 [](const CanaryCall& canary) { return "number " + std::to_string(canary.which); },
                 [](const EmbedCall& embed) { return text_of(embed.request); },
                 [](const TokenizeCall& call_of) { return text_of(call_of.request); },
                 [](const DetokenizeCall& call_of) { return text_of(call_of.request); }},
             call.what);
}

}  // namespace berth::stress
