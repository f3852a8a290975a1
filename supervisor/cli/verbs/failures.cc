#include <string>

#include "common/text.h"
#include "supervisor/cli/format/failure_text.h"
#include "supervisor/cli/verbs/verbs.h"

namespace berth::cli {
namespace {

constexpr std::size_t kNameBytes = 256;

std::string nothing_to_show(const FailuresOptions& options) {
  const std::string model = printable_line(options.model, kNameBytes);
  if (options.all) {
    return (model.empty() ? "no failed load is remembered"
                          : "no failed load of " + model + " is remembered") +
           std::string("\n");
  }
  return (model.empty() ? std::string("no failure stands") : "no failure stands against " + model) +
         "\n";
}

Table table_of(const v1::ListFailuresResponse& reply, bool all, WallTime now) {
  std::vector<Table::Column> columns{{"MODEL", false, true}, {"CLASS"}, {"SINCE"}};
  if (all) columns.push_back({"STATE"});
  columns.push_back({"REASON"});
  Table table(std::move(columns));
  for (const v1::FailureRecord& record : reply.failures()) {
    const bool stands = !record.has_lifted();
    std::vector<Table::Cell> row{
        {printable_line(record.model(), kNameBytes)},
        {printable_line(record.class_(), 32), stands ? Style::kBad : Style::kDim},
        {ago(record.ended_unix_ms(), now)}};
    if (all) row.push_back({stands ? "stands" : "lifted"});
    std::string reason = failure_words(record);
    if (!stands) reason += " (" + lift_words(record.lifted(), now) + ")";
    row.push_back({std::move(reason)});
    table.add(std::move(row));
  }
  return table;
}

}  // namespace

ExitCode run_failures(Context& context, const FailuresOptions& options) {
  auto client = context.client();
  if (!client) return context.fail(client.error());
  v1::ListFailuresRequest request;
  request.set_model(options.model);
  request.set_history(options.all);
  if (options.limit) request.set_limit(*options.limit);
  const auto reply = (*client)->list_failures(request);
  if (!reply) return context.fail(reply.error(), options.model);
  if (context.json()) {
    context.print_json(*reply, JsonWriter::Layout::kIndented);
    return ExitCode::kOk;
  }
  if (reply->failures().empty()) {
    context.print(nothing_to_show(options));
    return ExitCode::kOk;
  }
  context.print_table(table_of(*reply, options.all, context.environment().wall_now()));
  if (reply->more()) {
    context.environment().err.write(
        "berth: there are more than these; --limit shows up to 1000, "
        "and a MODEL only its own\n");
  }
  return ExitCode::kOk;
}

}  // namespace berth::cli
