#include "worker/service/vocabulary_work.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "worker/service/invalid_argument.h"
#include "worker/service/preparer.h"
#include "worker/service/prompt_tokens.h"
#include "worker/service/request_check.h"

namespace berth::worker {
namespace {

Result<std::vector<TokenId>> tokens_of_text(const Engine& engine,
                                            const v1::TokenizeRequest& request) {
  const auto& text = request.text();
  if (text.size() > VocabularyBounds::kTextBytes) {
    return invalid_argument("text", "text has " + std::to_string(text.size()) + " bytes; at most " +
                                        std::to_string(VocabularyBounds::kTextBytes) +
                                        " are allowed. Send it in pieces.");
  }
  if (auto checked = check_utf8(text, "text"); !checked) return fail(checked.error());
  const bool literal = request.has_parse_special() && !request.parse_special();
  const std::array parts{PromptPart{text, literal}};
  return engine.tokenize_parts(parts, !request.has_add_special() || request.add_special());
}

Result<std::vector<TokenId>> tokens_of(Preparer& preparer, const v1::TokenizeRequest& request) {
  switch (request.input_case()) {
    case v1::TokenizeRequest::kText:
      return tokens_of_text(preparer.engine(), request);
    case v1::TokenizeRequest::kChat: {
      const auto tools = check_chat_tools(request.chat());
      if (!tools) return fail(tools.error());
      auto prompt = chat_tokens(preparer, request.chat(), *tools, VocabularyBounds::kTextBytes);
      if (!prompt) return fail(prompt.error());
      return std::move(prompt->tokens);
    }
    case v1::TokenizeRequest::INPUT_NOT_SET:
      break;
  }
  return invalid_argument("input", "The request has no input: text or chat must be set.");
}

Result<std::string> text_of(const Engine& engine, const v1::DetokenizeRequest& request) {
  if (request.ids_size() > VocabularyBounds::kIds) {
    return invalid_argument("ids", "There are " + std::to_string(request.ids_size()) +
                                       " ids; at most " + std::to_string(VocabularyBounds::kIds) +
                                       " are allowed. Send them in pieces.");
  }
  const auto tokens = check_tokens(request.ids(), engine.facts().vocabulary, "ids");
  if (!tokens) return fail(tokens.error());
  std::string text;
  for (const auto token : *tokens) {
    engine.append_piece(token, text, request.show_control());
    if (text.size() > VocabularyBounds::kAnswerBytes) {
      return invalid_argument("ids", "The text of these ids has more than " +
                                         std::to_string(VocabularyBounds::kAnswerBytes) +
                                         " bytes. Send them in pieces.");
    }
  }
  return text;
}

// What the three have in common: an answer is made, then moved into gRPC's response.
template <typename Request, typename Response>
class VocabularyWork final : public CallWork {
 public:
  using Make = Result<Response> (*)(Preparer&, const Request&);
  VocabularyWork(std::shared_ptr<UnaryCall> call, const Request& request, Response& response,
                 Make make)
      : call_(std::move(call)), request_(request), response_(response), make_(make) {}

  void run(Preparer& preparer) override { outcome_ = make_(preparer, request_); }

  void deliver() override {
    if (!outcome_) {
      call_->on_end(outcome_.error());
      return;
    }
    response_.Swap(&*outcome_);
    call_->answer();
  }

 private:
  const std::shared_ptr<UnaryCall> call_;
  const Request request_;
  Response& response_;
  const Make make_;
  Result<Response> outcome_;
};

}  // namespace

std::unique_ptr<CallWork> tokenize_work(std::shared_ptr<UnaryCall> call,
                                        const v1::TokenizeRequest& request,
                                        v1::TokenizeResponse& response) {
  using Work = VocabularyWork<v1::TokenizeRequest, v1::TokenizeResponse>;
  const auto make = [](Preparer& preparer,
                       const v1::TokenizeRequest& copy) -> Result<v1::TokenizeResponse> {
    const auto tokens = tokens_of(preparer, copy);
    if (!tokens) return fail(tokens.error());
    v1::TokenizeResponse made;
    made.mutable_ids()->Assign(tokens->begin(), tokens->end());
    for (const auto token : *tokens) {
      preparer.engine().append_piece(token, *made.add_texts(), true);
    }
    return made;
  };
  return std::make_unique<Work>(std::move(call), request, response, make);
}

std::unique_ptr<CallWork> count_work(std::shared_ptr<UnaryCall> call,
                                     const v1::TokenizeRequest& request,
                                     v1::CountTokensResponse& response) {
  using Work = VocabularyWork<v1::TokenizeRequest, v1::CountTokensResponse>;
  const auto make = [](Preparer& preparer,
                       const v1::TokenizeRequest& copy) -> Result<v1::CountTokensResponse> {
    const auto tokens = tokens_of(preparer, copy);
    if (!tokens) return fail(tokens.error());
    v1::CountTokensResponse made;
    made.set_tokens(static_cast<std::uint32_t>(tokens->size()));
    made.set_window(preparer.engine().facts().window);
    return made;
  };
  return std::make_unique<Work>(std::move(call), request, response, make);
}

std::unique_ptr<CallWork> detokenize_work(std::shared_ptr<UnaryCall> call,
                                          const v1::DetokenizeRequest& request,
                                          v1::DetokenizeResponse& response) {
  using Work = VocabularyWork<v1::DetokenizeRequest, v1::DetokenizeResponse>;
  const auto make = [](Preparer& preparer,
                       const v1::DetokenizeRequest& copy) -> Result<v1::DetokenizeResponse> {
    auto text = text_of(preparer.engine(), copy);
    if (!text) return fail(text.error());
    v1::DetokenizeResponse made;
    made.mutable_text()->swap(*text);
    return made;
  };
  return std::make_unique<Work>(std::move(call), request, response, make);
}

}  // namespace berth::worker
