#include <chrono>
#include <string>

#include "common/text.h"
#include "common/units.h"
#include "supervisor/cli/verbs/verbs.h"

namespace berth::cli {

ExitCode run_unload(Context& context, const UnloadOptions& options) {
  auto client = context.client();
  if (!client) return context.fail(client.error());
  v1::UnloadModelRequest request;
  request.set_model(options.model);
  request.set_force(options.force);
  const auto reply = (*client)->unload(request);
  if (!reply) {
    const ExitCode code = context.fail(reply.error(), options.model);
    if (!options.force && reply.error().kind == CallError::Kind::kRefused &&
        reply.error().detail.reason() == "conflict") {
      const bool pinned = reply.error().detail.message().find(" is pinned") != std::string::npos;
      context.environment().err.write(
          pinned ? "  'berth unpin " + printable_line(options.model, 256) +
                       "' lets it go; --force unloads it once, and it stays pinned\n"
                 : std::string("  --force unloads it also when requests run on it; they fail "
                               "then\n"));
    }
    return code;
  }
  if (context.json()) {
    context.print_json(*reply, JsonWriter::Layout::kIndented);
    return ExitCode::kOk;
  }
  std::string text = printable_line(options.model, 256) + " is unloaded";
  if (!reply->exit().empty()) text += " (" + printable_line(reply->exit(), 64) + ")";
  context.print(text + ", took " +
                format_duration_human(std::chrono::milliseconds(reply->took_ms())) + "\n");
  return ExitCode::kOk;
}

}  // namespace berth::cli
