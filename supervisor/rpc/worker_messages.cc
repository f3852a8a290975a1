#include "supervisor/rpc/worker_messages.h"

#include <string>
#include <utility>
#include <variant>

namespace berth::rpc {
namespace {

struct PutInput {
  v1::GenerateRequest& to;

  void operator()(const core::ChatInput& chat) const {
    to.mutable_chat()->set_messages_json(chat.messages_json);
    to.mutable_chat()->set_tools_json(chat.tools_json);
    to.mutable_chat()->set_add_generation_prompt(chat.add_generation_prompt);
  }
  void operator()(const core::PromptInput& prompt) const { to.set_prompt(prompt.text); }
  void operator()(const core::TokenInput& tokens) const {
    to.mutable_tokens()->mutable_ids()->Add(tokens.ids.begin(), tokens.ids.end());
  }
};

core::DoneEvent from_proto(const v1::Done& done) {
  core::DoneEvent to;
  to.finish_reason = done.finish_reason();
  to.stop_text = done.stop_text();
  to.usage = {done.usage().prompt_tokens(), done.usage().completion_tokens(),
              done.usage().cached_tokens()};
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
  std::visit(PutInput{to}, request.input);
  v1::Sampling& sampling = *to.mutable_sampling();
  if (request.sampling.temperature) sampling.set_temperature(*request.sampling.temperature);
  if (request.sampling.top_k) sampling.set_top_k(*request.sampling.top_k);
  if (request.sampling.top_p) sampling.set_top_p(*request.sampling.top_p);
  if (request.sampling.seed) sampling.set_seed(*request.sampling.seed);
  if (request.max_tokens) to.set_max_tokens(*request.max_tokens);
  for (const std::string& stop : request.stop) to.add_stop(stop);
  return to;
}

std::optional<core::GenerateEvent> from_proto(v1::GenerateEvent& event) {
  switch (event.event_case()) {
    case v1::GenerateEvent::kPrefill:
      return core::PrefillEvent{event.prefill().done(), event.prefill().total()};
    case v1::GenerateEvent::kToken: {
      core::TokenEvent token;
      token.text = std::move(*event.mutable_token()->mutable_text());
      token.ids.assign(event.token().ids().begin(), event.token().ids().end());
      return token;
    }
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
    to.memory.push_back({use.domain(), use.weights_bytes(), use.kv_bytes(), use.working_bytes()});
  }
  to.load_us = ready.load_us();
  to.warmup_us = ready.warmup_us();
  to.threads = ready.threads();
  return to;
}

}  // namespace berth::rpc
