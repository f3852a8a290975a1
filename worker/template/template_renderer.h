#pragma once

#include <optional>
#include <string>

#include "common/result.h"
#include "worker/engine/builtin_templates.h"
#include "worker/template/chat_request.h"
#include "worker/template/control_texts.h"
#include "worker/template/flat_conversation.h"
#include "worker/template/frames.h"
#include "worker/template/rendered_prompt.h"
#include "worker/template/template_process.h"

namespace berth::worker {

// The worker's chat template: renders in berth-template, which it starts, watches and starts again
// after a crash; never two at once. Where the template cannot be parsed, libllama's own one of the
// kind is used, if there is one.
//
// All calls on one thread, which must live as long as the process does: berth-template dies with
// it.
class TemplateRenderer {
 public:
  struct Setup {
    std::string program;  // path of berth-template
    TemplateSetup chat_template;
    bool named = false;  // its source is the name of one that is built in
    BuiltinTemplates builtin;
    TemplateLimits limits;
  };

  explicit TemplateRenderer(Setup setup);

  // Starts berth-template and hands it the template, without waiting for either.
  void warm_up();

  // The prompt: one part, or several where texts of clients contain control texts.
  // Errors: those of ChatTemplate; kTemplateFailed with the limit that was passed or how
  // berth-template ended; kDeadline where `abandoned` said so, kInternal where it cannot be
  // started. Waits for no more than TemplateLimits says; the next call works whatever became of
  // this one.
  Result<RenderedPrompt> render(const ChatRequest& request,
                                const TemplateProcess::Abandoned& abandoned = {});

  // Of the process; -1: none. For tests.
  [[nodiscard]] pid_t pid() const { return process_ ? process_->pid() : -1; }

 private:
  using Abandoned = TemplateProcess::Abandoned;

  Result<RenderedPrompt> attempt(const ChatRequest& request, const Abandoned& abandoned);
  Status begin(const Abandoned& abandoned);
  Status finish_setup(const Abandoned& abandoned);
  Result<TemplateAnswer> call(std::string_view frame, const Abandoned& abandoned);
  Result<RenderedPrompt> render_builtin(const ChatRequest& request, const Abandoned& abandoned);
  // Of a call that failed.
  Error drop_process(Error error);

  Setup setup_;
  ControlTexts control_;
  std::string setup_frame_;
  std::optional<TemplateProcess> process_;
  bool setup_pending_ = false;    // sent, and its answer not yet read
  bool retired_ = false;          // the last call found a process that had ended of its own will
  std::optional<Error> broken_;   // why the template cannot be used, for good
  std::optional<Error> refused_;  // why no chat can be rendered, for good
};

// Path of berth-template beside this program.
std::string template_program_beside_self();

}  // namespace berth::worker
