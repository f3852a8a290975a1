#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "common/reason.h"
#include "common/text.h"
#include "common/units.h"
#include "common/wall_time.h"
#include "supervisor/cli/answer.h"
#include "supervisor/cli/format/failure_text.h"
#include "supervisor/cli/verbs/verbs.h"

namespace berth::cli {
namespace {

constexpr std::size_t kTextBytes = 4096;

std::string line(std::string_view text) {
  return printable_line(text, kTextBytes);
}

std::string since(std::int64_t unix_ms, WallTime now) {
  return ago(unix_ms, now) + " (" + format_utc(WallTime(std::chrono::milliseconds(unix_ms))) + ")";
}

// Names on the left, what is said of them on the right, wrapped.
class Section {
 public:
  Section() : table_({{""}, {""}}) {}
  void add(std::string_view name, std::string text, Style style = Style::kPlain) {
    if (!text.empty()) table_.add({{"  " + std::string(name)}, {std::move(text), style}});
  }
  void print(Context& context) const {
    if (!table_.empty()) context.print_table(table_);
  }

 private:
  Table table_;
};

std::string instance_words(const v1::Instance& instance) {
  std::string text;
  if (instance.has_loading()) {
    text = line(instance.loading().phase()) + " " +
           std::to_string(static_cast<int>(instance.loading().fraction() * 100)) + " %";
  }
  const auto add = [&text](const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
  if (instance.pid() > 0) add("pid " + std::to_string(instance.pid()));
  if (instance.window() > 0) add("context " + std::to_string(instance.window()));
  return text.empty() ? text : " (" + text + ")";
}

// One sentence: what it is now.
std::string verdict(const v1::ModelReport& report) {
  const std::string name = line(report.model());
  if (!report.problem().empty()) return name + " cannot be used: " + line(report.problem());
  if (report.has_standing()) {
    return name + " is not loaded: its last load failed, and it is not tried again";
  }
  const bool absent = report.state() == "absent" || report.state().empty();
  if (absent) return name + " is not loaded; no failure stands against it";
  return name + " is " + line(report.state()) + instance_words(report.instance()) +
         "; no failure stands against it";
}

void print_standing(Context& context, const v1::ModelReport& report, WallTime now) {
  const v1::FailureRecord& failure = report.standing();
  context.print("\nThe failure that stands\n");
  Section section;
  section.add("class", line(failure.class_()) + ": " + line(failure.meaning()), Style::kBad);
  section.add("reason", line(failure.reason()));
  section.add("exit", exit_words(failure));
  section.add("since", since(failure.ended_unix_ms(), now));
  section.add("load took", format_duration_human(std::chrono::milliseconds(std::max<std::int64_t>(
                               failure.ended_unix_ms() - failure.started_unix_ms(), 0))));
  section.add("record", line(failure.id()));
  section.add("instance", line(failure.instance_id()));
  section.add("log", line(report.log_file()));
  for (const v1::FailureMemory& memory : failure.memory()) {
    section.add("memory",
                line(memory.domain()) + ": " + memory_words(memory) +
                    (memory.domain() == failure.failing_domain() ? "; it failed here" : ""));
  }
  section.add("way out", line(failure.way_out()), Style::kBold);
  section.add("restart", failure.outlives_restart() ? "a restart of the daemon does not lift it"
                                                    : "a restart of the daemon lifts it");
  section.print(context);
}

void print_conditions(Context& context, const v1::FailureRecord& failure) {
  if (failure.conditions().empty()) return;
  context.print("\nIt is lifted as soon as one of these is another one\n");
  Section section;
  for (const v1::Condition& condition : failure.conditions()) {
    section.add(line(condition.field()), line(condition.value()));
  }
  section.print(context);
}

// What only admins are told.
void print_evidence(Context& context, const v1::FailureRecord& failure) {
  if (!failure.log_tail().empty()) {
    context.print("\nThe last lines of its log\n");
    for (const std::string& one : failure.log_tail()) context.print("  | " + line(one) + "\n");
  }
  if (failure.command().empty()) return;
  context.print("\nWhat was started\n");
  for (const std::string& variable : failure.environment()) {
    context.print("  " + line(shell_line({variable})) + "\n");
  }
  context.print("  " + line(shell_line({failure.command().begin(), failure.command().end()})) +
                "\n");
}

void print_lifted(Context& context, const v1::ModelReport& report, WallTime now) {
  if (report.lifted().empty()) return;
  context.print("\nFailures that do not stand any more\n");
  Section section;
  for (const v1::FailureRecord& failure : report.lifted()) {
    section.add(ago(failure.ended_unix_ms(), now), line(failure.class_()) + ", " +
                                                       failure_words(failure) + "; " +
                                                       lift_words(failure.lifted(), now));
  }
  section.print(context);
}

std::string describe(const v1::PastLoad& load) {
  std::string text = line(load.outcome());
  if (load.has_ready_unix_ms() && load.load_ms() > 0) {
    text += " after " + format_duration_human(
                            std::chrono::milliseconds(static_cast<std::int64_t>(load.load_ms())));
  }
  if (!load.class_().empty()) text += ", " + line(load.class_());
  // The reason of a load says first what its process ended with, where that is known.
  const bool told = load.reason().starts_with(load.exit());
  if (!load.exit().empty() && !told) text += ", " + line(load.exit());
  const bool goes_on = told && !load.exit().empty();
  if (!load.reason().empty()) text += (goes_on ? ", " : ": ") + line(load.reason());
  return text;
}

void print_loads(Context& context, const v1::ModelReport& report, WallTime now) {
  if (!report.history_problem().empty()) {
    context.print("\nEarlier loads are not known: " + line(report.history_problem()) + "\n");
  }
  if (report.loads().empty()) return;
  context.print("\nThe last loads\n");
  Section section;
  for (const v1::PastLoad& load : report.loads()) {
    section.add(ago(load.started_unix_ms(), now), describe(load));
  }
  section.print(context);
}

}  // namespace

ExitCode run_why(Context& context, const WhyOptions& options) {
  auto client = context.client();
  if (!client) return context.fail(client.error());
  v1::ExplainModelRequest request;
  request.set_model(options.model);
  const auto report = (*client)->explain(request);
  if (!report) {
    // Whoever has a failed request has its id.
    const bool unknown = report.error().kind == CallError::Kind::kRefused &&
                         report.error().detail.reason() == reason_info(Reason::kUnknownModel).name;
    if (unknown) {
      if (const auto told = why_request(context, **client, options.model)) return *told;
    }
    return context.fail(report.error(), options.model);
  }
  if (context.json()) {
    context.print_json(*report, JsonWriter::Layout::kIndented);
    return ExitCode::kOk;
  }
  const WallTime now = context.environment().wall_now();
  context.print(verdict(*report) + "\n");
  if (report->has_standing()) {
    print_standing(context, *report, now);
    print_evidence(context, report->standing());
    print_conditions(context, report->standing());
  }
  print_lifted(context, *report, now);
  print_loads(context, *report, now);
  return ExitCode::kOk;
}

}  // namespace berth::cli
