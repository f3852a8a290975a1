#include "supervisor/rpc/worker_messages.h"

#include <cstddef>
#include <string>
#include <utility>
#include <variant>

namespace berth::rpc {
namespace {

void put_chat(const core::ChatInput& from, v1::ChatInput& to) {
  to.set_messages_json(from.messages_json);
  to.set_tools_json(from.tools_json);
  to.set_add_generation_prompt(from.add_generation_prompt);
  to.set_tool_choice_json(from.tool_choice_json);
  to.set_template_variables_json(from.template_variables_json);
  to.set_raw_answer(from.raw_answer);
}

struct PutInput {
  v1::GenerateRequest& to;

  void operator()(const core::ChatInput& chat) const { put_chat(chat, *to.mutable_chat()); }
  void operator()(const core::PromptInput& prompt) const { to.set_prompt(prompt.text); }
  void operator()(const core::TokenInput& tokens) const {
    to.mutable_tokens()->mutable_ids()->Add(tokens.ids.begin(), tokens.ids.end());
  }
};

struct PutEmbedInput {
  v1::EmbedInput& to;

  void operator()(const core::PromptInput& prompt) const { to.set_text(prompt.text); }
  void operator()(const core::TokenInput& tokens) const {
    to.mutable_tokens()->mutable_ids()->Add(tokens.ids.begin(), tokens.ids.end());
  }
};

struct PutTokenizeInput {
  v1::TokenizeRequest& to;

  void operator()(const core::TextInput& text) const {
    to.set_text(text.text);
    to.set_parse_special(text.parse_special);
    to.set_add_special(text.add_special);
  }
  void operator()(const core::ChatInput& chat) const { put_chat(chat, *to.mutable_chat()); }
};

struct PutFormat {
  v1::GenerateRequest& to;

  void operator()(std::monostate) const {}
  void operator()(core::JsonObjectFormat) const { to.mutable_format()->set_json_object(true); }
  void operator()(const core::JsonSchemaFormat& format) const {
    to.mutable_format()->set_json_schema(format.schema);
  }
  void operator()(const core::GrammarFormat& format) const {
    to.mutable_format()->set_grammar(format.gbnf);
  }
};

void put_sampling(const core::Sampling& from, v1::Sampling& to) {
#define BERTH_SAMPLING_FIELD(type, name) \
  if (from.name) to.set_##name(*from.name);
#include "supervisor/core/sampling_fields.def"
#undef BERTH_SAMPLING_FIELD
  for (const std::string& breaker : from.dry_breakers) to.add_dry_breakers(breaker);
  for (const core::LogitBias& bias : from.logit_bias) {
    v1::LogitBias& added = *to.add_logit_bias();
    added.set_token(bias.token);
    added.set_bias(bias.bias);
  }
}

core::TokenLogprob from_proto(const v1::TokenLogprob& from) {
  return {from.id(), from.logprob(), from.text()};
}

core::TokenEvent from_proto(v1::Token& from) {
  core::TokenEvent to;
  to.text = std::move(*from.mutable_text());
  to.ids.assign(from.ids().begin(), from.ids().end());
  for (const v1::TokenLogprobs& one : from.logprobs()) {
    core::TokenLogprobs& added = to.logprobs.emplace_back();
    added.chosen = from_proto(one.chosen());
    for (const v1::TokenLogprob& top : one.top()) added.top.push_back(from_proto(top));
  }
  to.reasoning = std::move(*from.mutable_reasoning());
  for (v1::ToolCall& call : *from.mutable_tool_calls()) {
    to.tool_calls.push_back({call.index(), std::move(*call.mutable_id()),
                             std::move(*call.mutable_name()),
                             std::move(*call.mutable_arguments())});
  }
  return to;
}

core::DoneEvent from_proto(const v1::Done& done) {
  core::DoneEvent to;
  to.finish_reason = done.finish_reason();
  to.stop_text = done.stop_text();
  to.usage = {done.usage().prompt_tokens(), done.usage().completion_tokens(),
              done.usage().cached_tokens(), done.usage().drafted_tokens(),
              done.usage().accepted_tokens()};
  to.timings.queue_us = done.timings().queue_us();
  to.timings.prefill_us = done.timings().prefill_us();
  to.timings.decode_us = done.timings().decode_us();
  to.timings.first_token_us = done.timings().first_token_us();
  return to;
}

}  // namespace

v1::GenerateRequest to_proto(const core::GenerateRequest& request) {
  v1::GenerateRequest to;
  to.set_model(request.model);
  to.set_request_id(request.request_id);
  to.set_cache_scope(request.cache_scope);
  std::visit(PutInput{to}, request.input);
  put_sampling(request.sampling, *to.mutable_sampling());
  if (request.max_tokens) to.set_max_tokens(*request.max_tokens);
  for (const std::string& stop : request.stop) to.add_stop(stop);
  std::visit(PutFormat{to}, request.format);
  if (request.top_logprobs) to.set_top_logprobs(*request.top_logprobs);
  return to;
}

v1::EmbedRequest to_proto(const core::EmbedRequest& request) {
  v1::EmbedRequest to;
  to.set_model(request.model);
  to.set_request_id(request.request_id);
  for (const core::EmbedInput& input : request.inputs) {
    std::visit(PutEmbedInput{*to.add_inputs()}, input);
  }
  to.set_normalize(request.normalize);
  if (request.dimensions) to.set_dimensions(*request.dimensions);
  return to;
}

v1::TokenizeRequest to_proto(const core::TokenizeRequest& request) {
  v1::TokenizeRequest to;
  to.set_model(request.model);
  std::visit(PutTokenizeInput{to}, request.input);
  return to;
}

v1::DetokenizeRequest to_proto(const core::DetokenizeRequest& request) {
  v1::DetokenizeRequest to;
  to.set_model(request.model);
  to.mutable_ids()->Add(request.ids.begin(), request.ids.end());
  to.set_show_control(request.show_control);
  return to;
}

core::Embeddings from_proto(v1::EmbedResponse& response) {
  core::Embeddings to;
  to.embeddings.reserve(static_cast<std::size_t>(response.embeddings_size()));
  for (const v1::Embedding& embedding : response.embeddings()) {
    to.embeddings.push_back(
        {{embedding.values().begin(), embedding.values().end()}, embedding.tokens()});
  }
  to.prompt_tokens = response.prompt_tokens();
  return to;
}

core::Tokens from_proto(v1::TokenizeResponse& response) {
  core::Tokens to;
  to.ids.assign(response.ids().begin(), response.ids().end());
  to.texts.reserve(static_cast<std::size_t>(response.texts_size()));
  for (std::string& text : *response.mutable_texts()) to.texts.push_back(std::move(text));
  return to;
}

core::TokenCount from_proto(const v1::CountTokensResponse& response) {
  return {response.tokens(), response.window()};
}

core::DetokenizedText from_proto(v1::DetokenizeResponse& response) {
  return {std::move(*response.mutable_text())};
}

std::optional<core::GenerateEvent> from_proto(v1::GenerateEvent& event) {
  switch (event.event_case()) {
    case v1::GenerateEvent::kPrefill:
      return core::PrefillEvent{event.prefill().done(), event.prefill().total()};
    case v1::GenerateEvent::kToken:
      return from_proto(*event.mutable_token());
    case v1::GenerateEvent::kDone:
      return from_proto(event.done());
    case v1::GenerateEvent::kAccepted:
    case v1::GenerateEvent::kQueued:
    case v1::GenerateEvent::kLoading:
    case v1::GenerateEvent::kRestored:
    case v1::GenerateEvent::kError:
    case v1::GenerateEvent::EVENT_NOT_SET:
      return std::nullopt;
  }
  return std::nullopt;
}

WorkerProgress from_proto(const v1::Progress& progress) {
  return {progress.phase(), progress.fraction(), progress.bytes_done(), progress.bytes_total()};
}

WorkerReady from_proto(const v1::Ready& ready) {
  WorkerReady to;
  to.build_id = ready.build_id();
  to.window = ready.window();
  to.sequences = ready.sequences();
  to.longest_token_bytes = ready.longest_token_bytes();
  to.can_chat = ready.can_chat();
  for (const v1::MemoryUse& use : ready.memory()) {
    to.memory.push_back({use.domain(), use.weights_bytes(), use.kv_bytes(), use.working_bytes(),
                         use.mapped_bytes()});
  }
  to.load_us = ready.load_us();
  to.warmup_us = ready.warmup_us();
  to.threads = ready.threads();
  return to;
}

}  // namespace berth::rpc
