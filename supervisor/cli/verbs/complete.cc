#include <string>

#include "supervisor/cli/answer.h"
#include "supervisor/cli/verbs/verbs.h"

namespace berth::cli {

ExitCode run_complete(Context& context, const CompleteOptions& options) {
  const auto prompt = prompt_text(context.environment(), options.prompt);
  if (!prompt) return context.usage(prompt.error().message);

  v1::GenerateRequest request;
  request.set_model(options.model);
  request.set_prompt(*prompt);
  set_sampling(request, options.sampling);
  const Answer answer = ask_alone(context, request, options.verbose);
  return end_of(context, request, answer, options.verbose);
}

}  // namespace berth::cli
