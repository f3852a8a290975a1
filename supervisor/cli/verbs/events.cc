#include <cstdint>
#include <string>

#include "supervisor/cli/format/event_text.h"
#include "supervisor/cli/format/text.h"
#include "supervisor/cli/verbs/verbs.h"

namespace berth::cli {

ExitCode run_events(Context& context, const EventsOptions& options) {
  Environment& environment = context.environment();
  v1::WatchEventsRequest request;
  request.set_follow(options.follow);
  request.set_prefix(options.prefix);
  if (!options.since.empty()) {
    const auto since = parse_since(options.since, environment.wall_now());
    if (!since) return context.usage("--since: " + since.error().message);
    request.set_since_unix_ms(since->time_since_epoch().count());
  }
  auto client = context.client();
  if (!client) return context.fail(client.error());
  const bool colours = environment.colours(environment.out);
  std::uint64_t given = 0;
  const auto write = [&](const v1::Event& event) {
    // An events.gap has no number.
    if (event.sequence() > 0) given = event.sequence();
    if (context.json()) {
      context.print_json(event, JsonWriter::Layout::kLine);
    } else {
      environment.out.write(event_line(event, colours) + "\n");
    }
    return !environment.out.failed();
  };
  auto reply = (*client)->watch_events(request, write, {});
  // They came faster than the output took them; what waited is still kept. Whoever gets nothing is
  // refused for another cause.
  for (std::uint64_t before = 0; !reply && options.follow && given > before &&
                                 reply.error().kind == CallError::Kind::kRefused &&
                                 reply.error().detail.reason() == "queue_full";) {
    before = given;
    request.set_after(given);
    reply = (*client)->watch_events(request, write, {});
  }
  if (reply) return ExitCode::kOk;
  if (reply.error().kind == CallError::Kind::kStopped) {
    return context.refuse("cannot write the events: " +
                          environment.out.failed().value_or("stopped"));
  }
  return context.fail(reply.error());
}

}  // namespace berth::cli
