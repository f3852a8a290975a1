#include <string>

#include "common/text.h"
#include "supervisor/cli/verbs/verbs.h"

namespace berth::cli {

ExitCode run_pin(Context& context, const PinOptions& options) {
  auto client = context.client();
  if (!client) return context.fail(client.error());
  v1::PinModelRequest request;
  request.set_model(options.model);
  const auto reply = (*client)->pin(request);
  if (!reply) return context.fail(reply.error(), options.model);
  if (context.json()) {
    context.print_json(*reply, JsonWriter::Layout::kIndented);
    return ExitCode::kOk;
  }
  const std::string model = printable_line(reply->model(), 256);
  std::string text = model + (reply->was_pinned() ? " was pinned already" : " is pinned");
  text += reply->resident()
              ? ": it stays loaded until it is unpinned or the server ends\n"
              : ": once it is loaded it stays; 'berth load " + model + "' loads it now\n";
  context.print(text);
  return ExitCode::kOk;
}

ExitCode run_unpin(Context& context, const PinOptions& options) {
  auto client = context.client();
  if (!client) return context.fail(client.error());
  v1::UnpinModelRequest request;
  request.set_model(options.model);
  const auto reply = (*client)->unpin(request);
  if (!reply) return context.fail(reply.error(), options.model);
  if (context.json()) context.print_json(*reply, JsonWriter::Layout::kIndented);
  const std::string model = printable_line(reply->model(), 256);
  if (reply->by_configuration()) {
    return context.refuse(model + " stays pinned, since the configuration says so",
                          {"take 'pin = true' away there and reload it"});
  }
  if (!context.json()) {
    context.print(model +
                  (reply->was_pinned() ? " is not pinned any more\n" : " was not pinned\n"));
  }
  return ExitCode::kOk;
}

}  // namespace berth::cli
