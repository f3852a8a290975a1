#include "supervisor/gateway/grpc/convert.h"

#include <map>
#include <string_view>
#include <utility>

#include "supervisor/core/entitlement.h"
#include "supervisor/gateway/validate.h"
#include "supervisor/rpc/failure_message.h"
#include "supervisor/rpc/progress_messages.h"

namespace berth::gateway {
namespace {

core::Sampling from_proto(const v1::Sampling& from) {
  core::Sampling to;
#define BERTH_SAMPLING_FIELD(type, name) \
  if (from.has_##name()) to.name = from.name();
#include "supervisor/core/sampling_fields.def"
#undef BERTH_SAMPLING_FIELD
  to.dry_breakers.assign(from.dry_breakers().begin(), from.dry_breakers().end());
  for (const v1::LogitBias& bias : from.logit_bias()) {
    to.logit_bias.push_back({bias.token(), bias.bias()});
  }
  return to;
}

Result<core::OutputFormat> from_proto(const v1::OutputFormat& from) {
  switch (from.format_case()) {
    case v1::OutputFormat::kJsonObject:
      if (!from.json_object()) {
        return invalid_argument("format.json_object",
                                "format.json_object is false: leave `format` out for free text.");
      }
      return core::JsonObjectFormat{};
    case v1::OutputFormat::kJsonSchema:
      return core::JsonSchemaFormat{from.json_schema()};
    case v1::OutputFormat::kGrammar:
      return core::GrammarFormat{from.grammar()};
    case v1::OutputFormat::FORMAT_NOT_SET:
      break;
  }
  return core::OutputFormat{};
}

core::ChatInput from_proto(const v1::ChatInput& from) {
  core::ChatInput chat{from.messages_json(), from.tools_json()};
  if (from.has_add_generation_prompt()) chat.add_generation_prompt = from.add_generation_prompt();
  chat.tool_choice_json = from.tool_choice_json();
  chat.template_variables_json = from.template_variables_json();
  chat.raw_answer = from.raw_answer();
  return chat;
}

Status validate_names(const std::string& request_id, const std::string& user) {
  if (!request_id.empty()) {
    if (Status ok = validate_request_id(request_id); !ok) return ok;
  }
  if (user.size() <= kMaxUserBytes) return {};
  return invalid_argument("user", "user has more than 256 bytes.");
}

void put_logprob(core::TokenLogprob& from, v1::TokenLogprob& to) {
  to.set_id(from.id);
  to.set_logprob(from.logprob);
  to.set_text(std::move(from.text));
}

}  // namespace

Result<core::GenerateRequest> from_proto(const v1::GenerateRequest& request) {
  core::GenerateRequest to;
  to.model = request.model();
  to.request_id = request.request_id();
  to.user = request.user();
  switch (request.input_case()) {
    case v1::GenerateRequest::kChat:
      to.input = from_proto(request.chat());
      break;
    case v1::GenerateRequest::kPrompt:
      to.input = core::PromptInput{request.prompt()};
      break;
    case v1::GenerateRequest::kTokens:
      to.input = core::TokenInput{{request.tokens().ids().begin(), request.tokens().ids().end()}};
      break;
    case v1::GenerateRequest::INPUT_NOT_SET:
      return invalid_argument("input",
                              "The request has no input: give one of chat, prompt or tokens.");
  }
  to.sampling = from_proto(request.sampling());
  auto format = from_proto(request.format());
  if (!format) return fail(format.error());
  to.format = std::move(*format);
  if (request.has_top_logprobs()) to.top_logprobs = request.top_logprobs();
  if (request.has_max_tokens()) to.max_tokens = request.max_tokens();
  to.stop.assign(request.stop().begin(), request.stop().end());
  if (Status ok = validate_names(request.request_id(), request.user()); !ok) {
    return fail(ok.error());
  }
  if (Status ok = validate(to); !ok) return fail(ok.error());
  return to;
}

Result<core::EmbedRequest> from_proto(const v1::EmbedRequest& request) {
  core::EmbedRequest to;
  to.model = request.model();
  to.request_id = request.request_id();
  to.user = request.user();
  to.normalize = !request.has_normalize() || request.normalize();
  if (request.has_dimensions()) to.dimensions = request.dimensions();
  for (int i = 0; i < request.inputs_size(); ++i) {
    const v1::EmbedInput& input = request.inputs(i);
    switch (input.input_case()) {
      case v1::EmbedInput::kText:
        to.inputs.emplace_back(core::PromptInput{input.text()});
        break;
      case v1::EmbedInput::kTokens:
        to.inputs.emplace_back(
            core::TokenInput{{input.tokens().ids().begin(), input.tokens().ids().end()}});
        break;
      case v1::EmbedInput::INPUT_NOT_SET: {
        const std::string field = "inputs[" + std::to_string(i) + "]";
        return invalid_argument(field, field + " has neither text nor tokens.");
      }
    }
  }
  if (Status ok = validate_names(request.request_id(), request.user()); !ok) {
    return fail(ok.error());
  }
  if (Status ok = validate(to); !ok) return fail(ok.error());
  return to;
}

Result<core::TokenizeRequest> from_proto(const v1::TokenizeRequest& request) {
  core::TokenizeRequest to;
  to.model = request.model();
  switch (request.input_case()) {
    case v1::TokenizeRequest::kText:
      to.input =
          core::TextInput{request.text(), !request.has_parse_special() || request.parse_special(),
                          !request.has_add_special() || request.add_special()};
      break;
    case v1::TokenizeRequest::kChat:
      to.input = from_proto(request.chat());
      break;
    case v1::TokenizeRequest::INPUT_NOT_SET:
      return invalid_argument("input", "The request has no input: give one of text or chat.");
  }
  if (Status ok = validate(to); !ok) return fail(ok.error());
  return to;
}

Result<core::DetokenizeRequest> from_proto(const v1::DetokenizeRequest& request) {
  core::DetokenizeRequest to;
  to.model = request.model();
  to.ids.assign(request.ids().begin(), request.ids().end());
  to.show_control = request.show_control();
  if (Status ok = validate(to); !ok) return fail(ok.error());
  return to;
}

void put_answer(core::Embeddings answer, const std::string& model, const std::string& request_id,
                v1::EmbedResponse& response) {
  for (const core::Embedding& embedding : answer.embeddings) {
    v1::Embedding& to = *response.add_embeddings();
    to.mutable_values()->Add(embedding.values.begin(), embedding.values.end());
    to.set_tokens(embedding.tokens);
  }
  response.set_prompt_tokens(answer.prompt_tokens);
  response.set_request_id(request_id);
  response.set_model(model);
}

void put_answer(core::Tokens answer, const std::string& /*model*/,
                const std::string& /*request_id*/, v1::TokenizeResponse& response) {
  response.mutable_ids()->Add(answer.ids.begin(), answer.ids.end());
  for (std::string& text : answer.texts) response.add_texts(std::move(text));
}

void put_answer(core::TokenCount answer, const std::string& /*model*/,
                const std::string& /*request_id*/, v1::CountTokensResponse& response) {
  response.set_tokens(answer.tokens);
  response.set_window(answer.window);
}

void put_answer(core::DetokenizedText answer, const std::string& /*model*/,
                const std::string& /*request_id*/, v1::DetokenizeResponse& response) {
  response.set_text(std::move(answer.text));
}

v1::GenerateEvent to_event(const residency::ClaimProgress& progress) {
  v1::GenerateEvent event;
  if (progress.queue_position) {
    *event.mutable_queued() = rpc::to_queued(*progress.queue_position, progress.eta);
  } else {
    *event.mutable_loading() =
        rpc::to_loading(progress.phase, progress.waits_for, progress.fraction, progress.eta);
  }
  return event;
}

v1::GenerateEvent to_event(const core::PrefillEvent& prefill) {
  v1::GenerateEvent event;
  event.mutable_prefill()->set_done(prefill.done);
  event.mutable_prefill()->set_total(prefill.total);
  return event;
}

v1::GenerateEvent to_event(core::TokenEvent token) {
  v1::GenerateEvent event;
  event.mutable_token()->set_text(std::move(token.text));
  v1::Token& to = *event.mutable_token();
  to.mutable_ids()->Add(token.ids.begin(), token.ids.end());
  for (core::TokenLogprobs& one : token.logprobs) {
    v1::TokenLogprobs& added = *to.add_logprobs();
    put_logprob(one.chosen, *added.mutable_chosen());
    for (core::TokenLogprob& top : one.top) put_logprob(top, *added.add_top());
  }
  to.set_reasoning(std::move(token.reasoning));
  for (core::ToolCall& call : token.tool_calls) {
    v1::ToolCall& added = *to.add_tool_calls();
    added.set_index(call.index);
    added.set_id(std::move(call.id));
    added.set_name(std::move(call.name));
    added.set_arguments(std::move(call.arguments));
  }
  return event;
}

v1::GenerateEvent to_event(const Finished& finished) {
  v1::GenerateEvent event;
  v1::Done& done = *event.mutable_done();
  const core::DoneEvent& from = finished.done;
  done.set_finish_reason(from.finish_reason);
  done.set_stop_text(from.stop_text);
  done.mutable_usage()->set_prompt_tokens(from.usage.prompt_tokens);
  done.mutable_usage()->set_completion_tokens(from.usage.completion_tokens);
  done.mutable_usage()->set_cached_tokens(from.usage.cached_tokens);
  done.mutable_usage()->set_drafted_tokens(from.usage.drafted_tokens);
  done.mutable_usage()->set_accepted_tokens(from.usage.accepted_tokens);
  done.mutable_timings()->set_queue_us(from.timings.queue_us);
  done.mutable_timings()->set_load_us(from.timings.load_us);
  done.mutable_timings()->set_prefill_us(from.timings.prefill_us);
  done.mutable_timings()->set_decode_us(from.timings.decode_us);
  done.mutable_timings()->set_first_token_us(from.timings.first_token_us);
  done.set_instance_id(finished.instance_id);
  done.set_model(finished.model);
  return event;
}

v1::Model to_proto(const catalog::Model& model, const residency::ModelNow& now,
                   const core::Caller& caller) {
  v1::Model to;
  to.set_name(model.name);
  for (const std::string& alias : model.aliases) to.add_aliases(alias);
  to.set_kind(model.settings.kind == catalog::Kind::kCommand ? "command" : "llama");
  to.set_architecture(model.architecture);
  to.set_title(model.title);
  to.set_parameters(model.parameters);
  to.set_file_bytes(model.file_bytes);
  to.set_quantization(model.quantization);
  to.set_declared_context(model.declared_context);
  to.set_context(now.window);
  to.set_can_chat(model.can_chat);
  to.set_can_embed(model.can_embed || model.settings.embeddings);
  to.set_state(now.state);
  to.set_problem(core::model_problem_for(now.problem, caller));
  if (caller.admin()) to.set_path(model.path);
  to.set_shards(static_cast<std::uint32_t>(model.shards.size()));
  to.set_modified_unix_ms(model.modified.time_since_epoch().count());
  return to;
}

void put_failures(const std::vector<core::FailureRecord>& standing, const core::Caller& caller,
                  v1::ListModelsResponse& to) {
  std::map<std::string_view, const core::FailureRecord*> by_model;
  for (const core::FailureRecord& record : standing) by_model.emplace(record.model, &record);
  for (v1::Model& model : *to.mutable_models()) {
    const auto found = by_model.find(model.name());
    if (found == by_model.end()) continue;
    if (model.state() == "absent") model.set_state("failed");
    *model.mutable_failure() = rpc::to_brief(*found->second, caller);
  }
}

}  // namespace berth::gateway
