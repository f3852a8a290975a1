#include "supervisor/machine_memory.h"

#include <unistd.h>

#include <string_view>
#include <utility>
#include <variant>

#include "supervisor/charged_processes.h"
#include "supervisor/core/failure.h"
#include "supervisor/host_look.h"
#include "supervisor/memory/device_environment.h"
#include "supervisor/process/own_cgroup.h"

namespace berth {
namespace {

std::function<memory::HostReading()> host_reader(std::string cgroup) {
  if (cgroup.empty()) cgroup = process::own_cgroup().value_or(std::string());
  // A look that is late may be at it when everything else has ended.
  const auto look = std::make_shared<HostLook>(::getpid(), std::move(cgroup),
                                               process::cgroup_mount().value_or(std::string()));
  return [look] { return look->read(); };
}

std::string text_of(const Event& event, std::string_view name) {
  for (const EventField& field : event.fields) {
    if (field.name != name) continue;
    const auto* const text = std::get_if<std::string>(&field.value);
    return text == nullptr ? std::string() : *text;
  }
  return {};
}

}  // namespace

MachineMemory::MachineMemory(Parts parts)
    : clock_(parts.clock),
      lister_({.clock = parts.clock,
               .launcher = parts.launcher,
               .on_readable = parts.on_readable,
               .program = parts.worker_program,
               .environment = memory::listing_environment(parts.environment)}),
      probe_(memory::make_nvml_probe(parts.clock)),
      keeper_({.clock = parts.clock,
               .events = parts.events,
               .run_blocking = parts.run_blocking,
               .lister = lister_,
               .probe = *probe_,
               .read_host = host_reader(std::move(parts.cgroup)),
               .budgets = std::move(parts.budgets),
               .other_numbers = drivers_count_otherwise(),
               .charged =
                   [instances = std::move(parts.instances), &clock = parts.clock] {
                     return charged_processes(instances(), clock.wall_now());
                   },
               .on_changed = std::move(parts.on_changed),
               .on_process = std::move(parts.on_process)}) {}

void MachineMemory::on_event(const Event& event) {
  if (event.name != std::string_view("load.failed")) return;
  const auto failure = core::failure_class_from_name(text_of(event, "failure_class"));
  // Without a process there was no memory that it was refused.
  const bool refused =
      failure == core::FailureClass::kOom ||
      (failure == core::FailureClass::kResource && !text_of(event, "exit").empty());
  if (refused) clock_.post([this] { keeper_.note_allocation_failure(); });
}

}  // namespace berth
