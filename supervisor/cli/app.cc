#include "supervisor/cli/app.h"

#include "supervisor/cli/command_line.h"
#include "supervisor/cli/context.h"

namespace berth::cli {

ExitCode run(const std::vector<std::string>& arguments, Environment& environment) {
  const Invocation invocation = parse_command_line(arguments);
  Context context(environment, invocation.common);
  ExitCode code = ExitCode::kOk;
  switch (invocation.kind) {
    case Invocation::Kind::kPrint:
      environment.out.write(invocation.text);
      break;
    case Invocation::Kind::kUsage:
      context.tell({invocation.text, invocation.hints});
      return ExitCode::kUsage;
    case Invocation::Kind::kVerb:
      if (invocation.needs_endpoint && !context.endpoint()) {
        return context.usage(context.endpoint().error().message);
      }
      if (invocation.needs_endpoint && !context.access()) {
        return context.usage(context.access().error().message);
      }
      code = invocation.verb(context);
      break;
  }
  const auto failed = environment.out.failed();
  if (failed && code == ExitCode::kOk) {
    return context.refuse("cannot write to the standard output: " + *failed);
  }
  return code;
}

}  // namespace berth::cli
