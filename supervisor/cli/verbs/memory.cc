#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include "common/text.h"
#include "common/units.h"
#include "supervisor/cli/error_report.h"
#include "supervisor/cli/format/memory_text.h"
#include "supervisor/cli/format/text.h"
#include "supervisor/cli/verbs/verbs.h"

namespace berth::cli {
namespace {

constexpr std::size_t kNameBytes = 256;
constexpr std::size_t kBarColumns = 60;
constexpr std::size_t kLeastBarColumns = 20;

std::string bytes_or_dash(std::uint64_t bytes) {
  return bytes > 0 ? format_bytes(bytes) : "-";
}

Table bars(const v1::Memory& memory, std::size_t columns) {
  Table table({{""}, {""}, {""}});
  for (const v1::DomainState& domain : memory.domains()) {
    const std::string id = printable_line(domain.id(), kNameBytes);
    const std::size_t beside = display_width(id) + 30;
    const std::size_t room = columns == 0 ? kBarColumns : columns - std::min(columns, beside);
    const std::string bar = memory_bar(domain, std::clamp(room, kLeastBarColumns, kBarColumns));
    std::string text = format_bytes(domain.available_bytes()) + " free for models";
    if (domain.lost()) text = "not there at the moment";
    table.add({{id}, {"[" + bar + "]"}, {text, domain.lost() ? Style::kBad : Style::kPlain}});
  }
  return table;
}

Table domains(const v1::Memory& memory) {
  Table table({{"DOMAIN", false, true},
               {"DEVICE"},
               {"TOTAL", true},
               {"BUDGET", true},
               {"LIMIT", true},
               {"WEIGHTS", true},
               {"KV", true},
               {"WORKING", true},
               {"OVERHEAD", true},
               {"BANK", true},
               {"FOREIGN", true},
               {"FREE", true}});
  for (const v1::DomainState& domain : memory.domains()) {
    const v1::ChargeParts& charged = domain.charged();
    table.add({{printable_line(domain.id(), kNameBytes)},
               {domain.device().empty() ? "-" : printable_line(domain.device(), 64)},
               {bytes_or_dash(domain.total_bytes())},
               {bytes_or_dash(domain.budget_bytes())},
               {bytes_or_dash(domain.limit_bytes())},
               {bytes_or_dash(charged.weights_bytes())},
               {bytes_or_dash(charged.kv_bytes())},
               {bytes_or_dash(charged.working_bytes())},
               {bytes_or_dash(charged.overhead_bytes())},
               {bytes_or_dash(domain.bank_bytes())},
               {bytes_or_dash(domain.foreign_bytes())},
               {format_bytes(domain.available_bytes())}});
  }
  return table;
}

std::string used_by(const v1::ChargedInstance& instance) {
  if (instance.clients() > 0) return counted(instance.clients(), "client");
  if (instance.idle_work() > 0) return "idle work";
  if (!instance.has_idle_ms()) return "-";
  return "idle for " + format_seconds(std::chrono::milliseconds(instance.idle_ms()));
}

Table instances(const v1::Memory& memory) {
  Table table(
      {{"MODEL", false, true}, {"STATE"}, {"WINDOW", true}, {"USE"}, {"PINNED"}, {"TAKES"}});
  for (const v1::ChargedInstance& instance : memory.instances()) {
    table.add({{printable_line(instance.model(), kNameBytes)},
               {printable_line(instance.state(), 32)},
               {instance.window() > 0 ? std::to_string(instance.window()) : "-"},
               {used_by(instance)},
               {instance.pinned() ? "yes" : "-"},
               {charge_text(instance.charge())}});
  }
  return table;
}

Table waiting(const v1::Memory& memory, WallTime now) {
  Table table(
      {{"WAITS FOR MEMORY", false, true}, {"SINCE"}, {"MISSING"}, {"HELD FOR IT"}, {"FOR"}});
  for (const v1::MemoryWait& wait : memory.waiting()) {
    table.add({{printable_line(wait.model(), kNameBytes)},
               {ago(wait.since_unix_ms(), now)},
               {amounts_text(wait.missing())},
               {amounts_text(wait.held())},
               {waits_for_text(wait.waits_for())}});
  }
  return table;
}

std::string pressure_line(const v1::MemoryPressure& pressure) {
  std::string text = "pressure: " + printable_line(pressure.level(), 32);
  if (pressure.source() == "self") text += ", by berth itself";
  if (pressure.source() == "foreign") text += ", by other programs";
  for (const v1::PressureEvidence& evidence : pressure.evidence()) {
    text +=
        (&evidence == &pressure.evidence(0) ? " (" : ", ") + printable_line(evidence.sign(), 32);
  }
  return text + (pressure.evidence().empty() ? "\n" : ")\n");
}

}  // namespace

ExitCode run_memory(Context& context) {
  auto client = context.client();
  if (!client) return context.fail(client.error());
  const auto memory = (*client)->memory();
  if (!memory) return context.fail(memory.error());
  if (context.json()) {
    context.print_json(*memory, JsonWriter::Layout::kIndented);
    return ExitCode::kOk;
  }
  Environment& environment = context.environment();
  const int columns = environment.out.terminal() ? environment.columns() : 0;
  if (memory->counted()) {
    context.print_table(bars(*memory, static_cast<std::size_t>(std::max(columns, 0))));
    context.print(std::string(kMemoryBarLegend) + "\n\n");
  } else {
    context.print("no memory is counted: models are started whatever they take\n");
  }
  context.print_table(domains(*memory));
  if (memory->instances_size() > 0) {
    context.print("\n");
    context.print_table(instances(*memory));
  }
  if (memory->waiting_size() > 0) {
    context.print("\n");
    context.print_table(waiting(*memory, environment.wall_now()));
  }
  if (memory->has_pressure()) context.print("\n" + pressure_line(memory->pressure()));
  for (const std::string& problem : memory->problems()) {
    context.print("warning: " + printable_line(problem, 1024) + "\n");
  }
  return ExitCode::kOk;
}

}  // namespace berth::cli
