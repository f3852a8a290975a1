#include "supervisor/cli/doctor/memory.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "common/text.h"
#include "common/units.h"
#include "supervisor/cli/doctor/subprocess.h"
#include "supervisor/cli/format/text.h"
#include "supervisor/memory/device_list.h"
#include "supervisor/memory/host_memory.h"
#include "supervisor/memory/nvml.h"

namespace berth::cli {
namespace {

constexpr std::chrono::seconds kListDeadline{5};
constexpr std::chrono::seconds kDriverDeadline{3};
constexpr std::size_t kTextBytes = 1024;

// The driver may hang: then the thread is left to itself.
Result<std::vector<memory::DeviceReading>> ask_driver() {
  using Readings = Result<std::vector<memory::DeviceReading>>;
  auto task = std::make_shared<std::packaged_task<Readings()>>([]() -> Readings {
    const auto nvml = memory::Nvml::open();
    if (!nvml) return fail(nvml.error());
    return (*nvml)->read();
  });
  std::future<Readings> answer = task->get_future();
  std::thread([task] { (*task)(); }).detach();
  if (answer.wait_for(kDriverDeadline) != std::future_status::ready) {
    return fail(Reason::kDeadline, "The driver does not answer.");
  }
  return answer.get();
}

}  // namespace

Result<std::vector<core::ListedDevice>> list_devices(const std::string& worker,
                                                     const std::vector<std::string>& environment) {
  const Ran ran = run_program({worker, "--devices"}, kListDeadline, environment);
  if (!ran.started || ran.timed_out || ran.status != 0) {
    return fail(Reason::kInternal, worker + " --devices does not list them");
  }
  auto listed = memory::find_device_list(ran.output);
  if (listed) return listed;
  return fail(Reason::kInternal, worker + " --devices: " + listed.error().message);
}

namespace {

// A sentence of the table, or of the daemon; those on the configuration begin with its key.
Check problem(const std::string& sentence) {
  return warning("memory", printable_line(sentence, kTextBytes),
                 sentence.starts_with("memory.") ? "correct it in the configuration"
                                                 : "'berth events' tells since when");
}

std::string title(const std::string& id) {
  return "memory of " + printable_line(id, 128);
}

Checks check_configured(const core::BudgetConfig& budgets, const std::string& worker) {
  const Result<memory::HostMemory> host = memory::read_host_memory();
  if (!host || ::access(worker.c_str(), X_OK) != 0) return {};
  const auto listed = list_devices(worker);
  if (!listed) {
    return {warning("memory", printable_line(listed.error().message, kTextBytes),
                    "devices are not used then; does the program start?")};
  }
  std::vector<core::DriverDevice> known;
  if (const auto read = ask_driver()) {
    for (const memory::DeviceReading& device : *read) {
      known.push_back({device.uuid, device.pci, device.name, device.total});
    }
  }
  return judge_table(core::make_domain_table(host->total, *listed, known, budgets));
}

}  // namespace

Checks judge_domains(const v1::Memory& memory) {
  Checks checks;
  if (!memory.counted()) {
    checks.push_back(warning("memory", "the daemon counts no memory", "is it of this version?"));
  }
  for (const v1::DomainState& domain : memory.domains()) {
    if (!memory.counted()) break;
    const std::string what = title(domain.id());
    const std::string found = format_bytes(domain.limit_bytes()) + " for models of " +
                              format_bytes(domain.total_bytes()) + ", " +
                              format_bytes(domain.charged_bytes()) + " charged, " +
                              format_bytes(domain.foreign_bytes()) + " used by other programs";
    // Of a budget that is more than there is a problem of the table tells.
    const std::uint64_t budget = std::min(domain.budget_bytes(), domain.total_bytes());
    if (domain.lost()) {
      checks.push_back(error(what, "its driver has lost it", "is it still there? see dmesg"));
    } else if (domain.limit_bytes() < budget / 2) {
      checks.push_back(warning(
          what,
          found + ", so that less than half of the budget (" + format_bytes(budget) + ") is left",
          "end other programs, or set a smaller budget"));
    } else {
      checks.push_back(ok(what, found));
    }
  }
  for (const std::string& sentence : memory.problems()) checks.push_back(problem(sentence));
  return checks;
}

Checks judge_table(const core::DomainTable& table) {
  Checks checks;
  for (const core::Domain& domain : table.domains) {
    checks.push_back(
        ok(title(domain.id),
           format_bytes(domain.budget) + " for models of " + format_bytes(domain.total) +
               (domain.device.empty() ? std::string()
                                      : " (" + printable_line(domain.device, 64) + ")")));
  }
  for (const std::string& sentence : table.problems) checks.push_back(problem(sentence));
  return checks;
}

Check judge_driver(const Result<std::vector<memory::DeviceReading>>& read, bool nodes) {
  if (read) {
    std::uint64_t total = 0;
    for (const memory::DeviceReading& device : *read) total += device.total;
    return ok("NVML", counted(read->size(), "device") + ", " + format_bytes(total));
  }
  if (read.error().reason == Reason::kNotFound && !nodes) {
    return ok("NVML", "not there; only devices of NVIDIA have it");
  }
  return warning("NVML", printable_line(read.error().message, kTextBytes),
                 "without it berth does not know what other programs use of NVIDIA's devices: is "
                 "the driver's library libnvidia-ml.so.1 installed, and does nvidia-smi answer?");
}

Check judge_stalls(const std::optional<memory::StallShares>& stalls) {
  if (stalls) return ok("memory pressure", "the kernel tells of stalls (PSI)");
  return warning("memory pressure",
                 "the kernel does not tell of stalls: pressure is judged by what is free, every "
                 "10 s",
                 "boot with psi=1 where the kernel has it");
}

Checks check_memory(const std::optional<v1::Memory>& daemons, const core::BudgetConfig& budgets,
                    const std::string& worker) {
  Checks checks = daemons ? judge_domains(*daemons) : check_configured(budgets, worker);
  checks.push_back(judge_driver(ask_driver(), ::access("/dev/nvidiactl", F_OK) == 0));
  checks.push_back(judge_stalls(memory::read_pressure()));
  return checks;
}

}  // namespace berth::cli
