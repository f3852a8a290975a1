#include "worker/template/template_renderer.h"

#include <unistd.h>

#include <array>
#include <utility>
#include <variant>

#include "worker/template/input_bounds.h"

namespace berth::worker {

TemplateRenderer::TemplateRenderer(Setup setup)
    : setup_(std::move(setup)), control_(setup_.chat_template.control_texts) {
  if (auto fits = check_vocabulary_texts(setup_.chat_template); !fits) {
    refused_ = std::move(fits).error();
    return;
  }
  auto sent = setup_.chat_template;
  if (!setup_.named) {
    if (auto fits = check_template_bytes(sent.source); !fits) broken_ = std::move(fits).error();
  }
  if (setup_.named || broken_) sent.source.clear();  // only to flatten
  setup_frame_ = encode_setup(sent);
}

void TemplateRenderer::warm_up() {
  if (refused_) return;
  [[maybe_unused]] const auto begun = begin({});  // where it failed, the first request says why
}

Error TemplateRenderer::drop_process(Error error) {
  retired_ = process_->retired();
  process_.reset();
  return error;
}

// Has a process run that the template was sent to.
Status TemplateRenderer::begin(const Abandoned& abandoned) {
  if (process_ && !process_->ended()) return {};
  process_.reset();
  auto started = TemplateProcess::start(setup_.program);
  if (!started) return fail(started.error());
  process_.emplace(std::move(*started));
  setup_pending_ = true;
  if (auto sent = process_->send(setup_frame_, setup_.limits, abandoned); !sent) {
    return fail(drop_process(std::move(sent).error()));
  }
  return {};
}

Status TemplateRenderer::finish_setup(const Abandoned& abandoned) {
  if (!setup_pending_) return {};
  const auto body = process_->answer(abandoned);
  if (!body) return fail(drop_process(body.error()));
  setup_pending_ = false;
  const auto answer = decode_answer(*body);
  if (!answer) return fail(drop_process(answer.error()));
  if (const auto* const error = std::get_if<Error>(&*answer)) broken_ = *error;
  return {};
}

Result<TemplateAnswer> TemplateRenderer::call(std::string_view frame, const Abandoned& abandoned) {
  if (auto sent = process_->send(frame, setup_.limits, abandoned); !sent) {
    return fail(drop_process(std::move(sent).error()));
  }
  const auto body = process_->answer(abandoned);
  if (!body) return fail(drop_process(body.error()));
  auto answer = decode_answer(*body);
  if (!answer) return fail(drop_process(answer.error()));
  return answer;
}

Result<RenderedPrompt> TemplateRenderer::render(const ChatRequest& request,
                                                const Abandoned& abandoned) {
  if (refused_) return fail(*refused_);
  if (auto fits = check_request_bytes(request); !fits) return fail(fits.error());
  retired_ = false;
  auto prompt = attempt(request, abandoned);
  if (prompt || !retired_) return prompt;
  return attempt(request, abandoned);
}

Result<RenderedPrompt> TemplateRenderer::attempt(const ChatRequest& request,
                                                 const Abandoned& abandoned) {
  if (auto begun = begin(abandoned); !begun) return fail(begun.error());
  if (auto set_up = finish_setup(abandoned); !set_up) return fail(set_up.error());
  if (broken_ || setup_.named) return render_builtin(request, abandoned);
  auto answer = call(encode_request(request, false), abandoned);
  if (!answer) return fail(answer.error());
  if (auto* const error = std::get_if<Error>(&*answer)) return fail(std::move(*error));
  if (auto* const prompt = std::get_if<RenderedPrompt>(&*answer)) return std::move(*prompt);
  return fail(Reason::kInternal, "berth-template answered something else.");
}

Result<RenderedPrompt> TemplateRenderer::render_builtin(const ChatRequest& request,
                                                        const Abandoned& abandoned) {
  if (setup_.builtin.apply == nullptr) {
    if (broken_) return fail(*broken_);
    return fail(Reason::kNotChat, "There are no built-in chat templates here.");
  }
  auto answer = call(encode_request(request, true), abandoned);
  if (!answer) return fail(answer.error());
  if (auto* const error = std::get_if<Error>(&*answer)) return fail(std::move(*error));
  const auto* const flat = std::get_if<FlatConversation>(&*answer);
  if (flat == nullptr) return fail(Reason::kInternal, "berth-template answered something else.");
  const auto text = setup_.builtin.apply(setup_.chat_template.source, flat->messages,
                                         request.add_generation_prompt);
  // What is wrong with the model's template says more than that there is no other.
  if (!text) return fail(broken_ ? *broken_ : text.error());
  return RenderedPrompt{control_.split(*text, flat->marks), !request.tools_json.empty()};
}

std::string template_program_beside_self() {
  std::array<char, 4096> path{};
  const auto size = ::readlink("/proc/self/exe", path.data(), path.size());
  if (size <= 0 || static_cast<std::size_t>(size) == path.size()) return "berth-template";
  const std::string self(path.data(), static_cast<std::size_t>(size));
  return self.substr(0, self.rfind('/') + 1) + "berth-template";
}

}  // namespace berth::worker
