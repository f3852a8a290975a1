#include "supervisor/cli/doctor/doctor.h"

#include <algorithm>
#include <string>

#include "common/proto_json/json_writer.h"
#include "common/text.h"
#include "supervisor/cli/doctor/check.h"
#include "supervisor/cli/doctor/daemon.h"
#include "supervisor/cli/doctor/disk.h"
#include "supervisor/cli/doctor/kernel.h"
#include "supervisor/cli/doctor/machine.h"
#include "supervisor/cli/doctor/memory.h"
#include "supervisor/cli/doctor/worker.h"
#include "supervisor/cli/format/text.h"

namespace berth::cli {
namespace {

constexpr std::size_t kTextBytes = 2048;

Style style_of(Finding finding) {
  switch (finding) {
    case Finding::kOk:
      return Style::kGood;
    case Finding::kWarning:
      return Style::kWarning;
    case Finding::kError:
      return Style::kBad;
  }
  return Style::kPlain;
}

std::string to_json(const Checks& checks) {
  JsonWriter json(JsonWriter::Layout::kIndented);
  json.begin_object();
  json.key("checks");
  json.begin_array();
  for (const Check& check : checks) {
    json.begin_object();
    json.member("finding", finding_name(check.finding));
    json.member("what", check.what);
    json.member("found", check.found);
    json.member("advice", check.advice);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.str();
}

void append(Checks& to, Checks from) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

}  // namespace

std::string_view finding_name(Finding finding) {
  switch (finding) {
    case Finding::kOk:
      return "ok";
    case Finding::kWarning:
      return "warning";
    case Finding::kError:
      return "error";
  }
  return "error";
}

ExitCode run_doctor(Context& context) {
  const DaemonState daemon = look_at_daemon(context);
  Checks checks = daemon.checks;
  append(checks, check_worker(context.environment(), daemon.program));
  append(checks, check_kernel());
  append(checks, check_limits());
  append(checks, check_directories(daemon.directories));
  append(checks, check_machine(context.environment().wall_now()));
  const std::string& own =
      daemon.program.empty() ? context.environment().executable : daemon.program;
  append(checks, check_memory(daemon.memory, daemon.budgets,
                              own.substr(0, own.rfind('/') + 1) + "berth-worker"));

  const auto count = [&](Finding finding) {
    return std::count_if(checks.begin(), checks.end(),
                         [&](const Check& check) { return check.finding == finding; });
  };
  const auto errors = static_cast<std::uint64_t>(count(Finding::kError));
  const auto warnings = static_cast<std::uint64_t>(count(Finding::kWarning));
  if (context.json()) {
    context.print_json(to_json(checks));
  } else {
    Table table({{""}, {""}, {""}});
    for (const Check& check : checks) {
      std::string text = check.found;
      if (!check.advice.empty()) text += (text.empty() ? "" : "; ") + check.advice;
      table.add({{std::string(finding_name(check.finding)), style_of(check.finding)},
                 {check.what},
                 {printable_line(text, kTextBytes)}});
    }
    context.print_table(table);
  }
  if (errors == 0) return ExitCode::kOk;
  return context.refuse(counted(errors, "error") +
                        (warnings > 0 ? ", " + counted(warnings, "warning") : ""));
}

}  // namespace berth::cli
