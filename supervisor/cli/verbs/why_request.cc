#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/proto_json/proto_json.h"
#include "common/text.h"
#include "common/uuid.h"
#include "common/wall_time.h"
#include "supervisor/cli/error_report.h"
#include "supervisor/cli/format/event_text.h"
#include "supervisor/cli/verbs/verbs.h"

namespace berth::cli {
namespace {

constexpr std::size_t kShownBytes = 1024;

std::string text_of(const v1::Event& event, std::string_view name) {
  const auto field = std::ranges::find(event.fields(), name, &v1::EventField::name);
  if (field == event.fields().end()) return {};
  return printable_line(field->text(), kShownBytes);
}

// What the daemon takes as a request's id: clients may bring their own.
bool can_be_request(std::string_view id) {
  constexpr std::size_t kMostBytes = 128;
  return !id.empty() && id.size() <= kMostBytes && std::ranges::all_of(id, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == ':' || c == '-';
  });
}

// "request.refused" as "was refused". Of those that are kept, none says that it was admitted: that
// is known only of the daemon that runs now.
std::string end_words(const v1::Event& event) {
  const std::string_view name = event.name();
  if (name == "request.admitted") return "runs; it began";
  if (name == "request.finished") return "was answered";
  if (name == "request.cancelled") return "was given up by its client";
  if (name == "request.refused") return "was refused";
  return "failed";
}

}  // namespace

std::optional<ExitCode> why_request(Context& context, Client& client, const std::string& id) {
  if (!can_be_request(id)) return std::nullopt;
  v1::WatchEventsRequest request;
  request.set_prefix("request.");
  request.set_since_unix_ms(1);
  request.set_request_id(id);
  std::vector<v1::Event> found;
  const auto reply = client.watch_events(request,
                                         [&](const v1::Event& event) {
                                           if (text_of(event, "request") == id)
                                             found.push_back(event);
                                           return true;
                                         },
                                         {});
  if (!reply) return std::nullopt;
  if (found.empty()) {
    // No model is named so.
    if (Uuid::parse(id).is_nil()) return std::nullopt;
    return context.refuse("no request " + id +
                          " is known: nobody asked with this id, or its events are not kept any "
                          "more");
  }
  if (context.json()) {
    JsonWriter json(JsonWriter::Layout::kIndented);
    json.begin_object();
    json.key("request");
    json.text(id);
    json.key("events");
    json.begin_array();
    for (const v1::Event& event : found) write_json(json, event);
    json.end_array();
    json.end_object();
    context.print_json(json.str());
    return ExitCode::kOk;
  }
  const v1::Event& last = found.back();
  const std::string message = text_of(last, "message");
  const std::string model = text_of(last, "model");
  context.print("request " + printable_line(id, kShownBytes) + " for " + model + " " +
                end_words(last) + " " + ago(last.time_unix_ms(), context.environment().wall_now()) +
                (message.empty() ? "" : ": " + message) + "\n\nIts events\n");
  for (const v1::Event& event : found) context.print("  " + event_line(event, false) + "\n");
  context.print("\n'berth why " + model + "' tells more of the model\n");
  return ExitCode::kOk;
}

}  // namespace berth::cli
