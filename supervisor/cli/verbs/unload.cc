#include <chrono>
#include <string>
#include <string_view>

#include "common/text.h"
#include "common/units.h"
#include "supervisor/cli/verbs/verbs.h"

namespace berth::cli {
namespace {

std::string hint(const std::string& model, const std::string& conflict) {
  const auto says = [&](std::string_view what) { return conflict.find(what) != std::string::npos; };
  if (says(" is pinned by the configuration")) {
    return "  --force unloads it once, and it stays pinned\n";
  }
  if (says(" is pinned")) {
    return "  'berth unpin " + printable_line(model, 256) +
           "' lets it go; --force unloads it once, and it stays pinned\n";
  }
  return "  --force unloads it also when requests run on it; they fail then\n";
}

}  // namespace

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
      context.environment().err.write(hint(options.model, reply.error().detail.message()));
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
