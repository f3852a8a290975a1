#include "supervisor/gateway/grpc/convert.h"

#include <utility>

#include "supervisor/gateway/validate.h"
#include "supervisor/rpc/progress_messages.h"

namespace berth::gateway {

Result<core::GenerateRequest> from_proto(const v1::GenerateRequest& request) {
  core::GenerateRequest to;
  to.model = request.model();
  to.request_id = request.request_id();
  switch (request.input_case()) {
    case v1::GenerateRequest::kChat: {
      core::ChatInput chat{request.chat().messages_json(), request.chat().tools_json()};
      if (request.chat().has_add_generation_prompt()) {
        chat.add_generation_prompt = request.chat().add_generation_prompt();
      }
      to.input = std::move(chat);
      break;
    }
    case v1::GenerateRequest::kPrompt:
      to.input = core::PromptInput{request.prompt()};
      break;
    case v1::GenerateRequest::kTokens:
      to.input = core::TokenInput{{request.tokens().ids().begin(), request.tokens().ids().end()}};
      break;
    case v1::GenerateRequest::INPUT_NOT_SET: {
      ErrorExtras extras;
      extras.param = "input";
      return fail(Error(Reason::kInvalidArgument,
                        "The request has no input: give one of chat, prompt or tokens.",
                        std::move(extras)));
    }
  }
  const v1::Sampling& sampling = request.sampling();
  if (sampling.has_temperature()) to.sampling.temperature = sampling.temperature();
  if (sampling.has_top_k()) to.sampling.top_k = sampling.top_k();
  if (sampling.has_top_p()) to.sampling.top_p = sampling.top_p();
  if (sampling.has_seed()) to.sampling.seed = sampling.seed();
  if (request.has_max_tokens()) to.max_tokens = request.max_tokens();
  to.stop.assign(request.stop().begin(), request.stop().end());
  if (!to.request_id.empty()) {
    if (Status ok = validate_request_id(to.request_id); !ok) return fail(ok.error());
  }
  if (request.user().size() > kMaxUserBytes) {
    ErrorExtras extras;
    extras.param = "user";
    return fail(
        Error(Reason::kInvalidArgument, "user has more than 256 bytes.", std::move(extras)));
  }
  if (Status ok = validate(to); !ok) return fail(ok.error());
  return to;
}

v1::GenerateEvent to_event(const residency::ClaimProgress& progress) {
  v1::GenerateEvent event;
  if (progress.queue_position) {
    *event.mutable_queued() = rpc::to_queued(*progress.queue_position, progress.eta);
  } else {
    *event.mutable_loading() = rpc::to_loading(progress.phase, progress.fraction, progress.eta);
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
  event.mutable_token()->mutable_ids()->Add(token.ids.begin(), token.ids.end());
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
  done.mutable_timings()->set_queue_us(from.timings.queue_us);
  done.mutable_timings()->set_load_us(from.timings.load_us);
  done.mutable_timings()->set_prefill_us(from.timings.prefill_us);
  done.mutable_timings()->set_decode_us(from.timings.decode_us);
  done.mutable_timings()->set_first_token_us(from.timings.first_token_us);
  done.set_instance_id(finished.instance_id);
  done.set_model(finished.model);
  return event;
}

v1::Model to_proto(const catalog::Model& model, const std::string& state, bool with_path) {
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
  to.set_context(model.served_context);
  to.set_can_chat(model.can_chat);
  to.set_can_embed(model.can_embed);
  to.set_state(state);
  to.set_problem(model.problem);
  if (with_path) to.set_path(model.path);
  to.set_shards(static_cast<std::uint32_t>(model.shards.size()));
  to.set_modified_unix_ms(model.modified.time_since_epoch().count());
  return to;
}

}  // namespace berth::gateway
