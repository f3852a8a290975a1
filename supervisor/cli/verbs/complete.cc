#include <string>

#include "supervisor/cli/answer.h"
#include "supervisor/cli/verbs/verbs.h"

namespace berth::cli {

ExitCode run_complete(Context& context, const CompleteOptions& options) {
  Environment& environment = context.environment();
  const auto prompt = prompt_text(environment, options.prompt);
  if (!prompt) return context.usage(prompt.error().message);
  environment.interrupts.take_over(Interrupts::Again::kEndsProgram);

  v1::GenerateRequest request;
  request.set_model(options.model);
  request.set_prompt(*prompt);
  set_sampling(request, options.sampling);
  const Answer answer = ask(context, request, options.verbose);
  return end_of(context, request, answer, options.verbose);
}

}  // namespace berth::cli
