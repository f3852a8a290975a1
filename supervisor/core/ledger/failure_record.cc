#include "supervisor/core/ledger/failure_record.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "common/named_rows.h"
#include "common/text.h"
#include "supervisor/core/redact.h"

namespace berth::core {
namespace {

struct Row {
  std::string_view name;
  std::string_view words;
};

constexpr std::array kRows = {
    Row{"provenance", "what it depends on moved"},
    Row{"memory", "memory became free, or less is needed"},
    Row{"success", "the model was loaded"},
    Row{"hand", "by hand"},
    Row{"restart", "the server was started anew, which this kind does not outlive"},
    Row{"superseded", "a newer load of the model decides"},
};
static_assert(kRows.size() == static_cast<std::size_t>(LiftCause::kSuperseded) + 1);

constexpr std::size_t kDetailBytes = 200;
constexpr std::size_t kDomainBytes = 64;

// Of a list of arguments; its entries may be anything, so only the size is looked at.
void bound_arguments(std::vector<std::string>& arguments) {
  std::size_t left = kFailureArgumentBytes;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string& argument = arguments[i];
    const std::size_t cost = argument.size() + 1;
    if (cost <= left) {
      left -= cost;
      continue;
    }
    argument.resize(utf8_prefix(argument, left));
    argument += "…";
    arguments.resize(i + 1);
    return;
  }
}

// Of kind "command": no file of a model is known.
bool is_command(const FailureRecord& record) {
  return record.provenance.program || (record.provenance.files && record.provenance.files->empty());
}

std::string command_way_out(const std::string& retry) {
  return "A change of its program, of a file that its command line names, or of its settings lifts "
         "this by itself; " +
         retry + ".";
}

}  // namespace

std::string_view lift_cause_name(LiftCause cause) {
  return kRows.at(static_cast<std::size_t>(cause)).name;
}

std::optional<LiftCause> lift_cause_from_name(std::string_view name) {
  return value_named<LiftCause>(kRows, name);
}

std::string to_string(const Lift& lift) {
  if (lift.cause == LiftCause::kProvenance && lift.moved) return to_string(*lift.moved);
  std::string text(kRows.at(static_cast<std::size_t>(lift.cause)).words);
  if (!lift.detail.empty()) text += ": " + lift.detail;
  return text;
}

FailureRecord bounded(FailureRecord record) {
  record.reason = carried_text(record.reason, kFailureReasonBytes);
  bound_arguments(record.command);
  bound_arguments(record.environment);
  if (record.log_tail.size() > kFailureLogLines) {
    const auto surplus =
        static_cast<std::ptrdiff_t>(record.log_tail.size()) - std::ptrdiff_t{kFailureLogLines};
    record.log_tail.erase(record.log_tail.begin(), record.log_tail.begin() + surplus);
  }
  for (std::string& line : record.log_tail) line = carried_text(line);
  if (record.memory.size() > kFailureDomains) record.memory.resize(kFailureDomains);
  for (FailureMemory& memory : record.memory) {
    memory.domain = printable_line(memory.domain, kDomainBytes);
  }
  record.failing_domain = printable_line(record.failing_domain, kDomainBytes);
  if (record.lifted) record.lifted->detail = printable_line(record.lifted->detail, kDetailBytes);
  return record;
}

std::string failure_sentence(const FailureRecord& record) {
  return failure_sentence(LoadFailure{record.failure_class, record.reason, record.exit});
}

bool outlives_restart(const FailureRecord& record) {
  switch (record.failure_class) {
    case FailureClass::kPermanent:
    case FailureClass::kLaunch:
    case FailureClass::kCrash:
      return true;
    case FailureClass::kResource:
    case FailureClass::kOom:
    case FailureClass::kCrashLoop:
    case FailureClass::kStalled:
    case FailureClass::kTimeout:
      return false;
    case FailureClass::kUnclassified:
      break;
  }
  return record.exit && std::holds_alternative<Exited>(*record.exit);
}

std::string way_out(const FailureRecord& record) {
  const std::string retry = "`berth retry " + record.model + "` tries it again";
  switch (record.failure_class) {
    case FailureClass::kPermanent:
      if (is_command(record)) return command_way_out(retry);
      if (record.provenance.devices && !record.provenance.devices->empty()) {
        return "Another file, other `devices` or another version of the server lift this by "
               "itself; " +
               retry + ".";
      }
      return "Another file or another version of the server lifts this by itself; " + retry + ".";
    case FailureClass::kResource:
    case FailureClass::kOom:
      if (record.failing_domain == kLaunchDomain) {
        return "This passes by itself: a request that comes after a second, or a minute where it "
               "lasts, tries again; " +
               retry + " at once.";
      }
      return "More free memory, a smaller window, fewer sequences or a restart of berthd lift this "
             "by "
             "itself; " +
             retry + ".";
    case FailureClass::kLaunch:
      if (is_command(record)) return command_way_out(retry);
      return "Correct the installation of berth or the model's settings; " + retry + ".";
    case FailureClass::kCrash:
    case FailureClass::kCrashLoop:
    case FailureClass::kStalled:
    case FailureClass::kTimeout:
    case FailureClass::kUnclassified:
      break;
  }
  if (is_command(record)) return command_way_out(retry);
  return "A change of its file or settings lifts this by itself; " + retry + ".";
}

}  // namespace berth::core
