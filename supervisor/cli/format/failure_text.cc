#include "supervisor/cli/format/failure_text.h"

#include "common/text.h"
#include "common/units.h"
#include "supervisor/cli/error_report.h"

namespace berth::cli {
namespace {

constexpr std::size_t kReasonBytes = 1024;
constexpr std::size_t kShortBytes = 64;

template <typename Message>
std::string exit_of(const Message& message) {
  if (!message.signal().empty()) return printable_line(message.signal(), kShortBytes);
  return message.has_exit_code() ? "exit " + std::to_string(message.exit_code()) : std::string();
}

}  // namespace

std::string exit_words(const v1::FailureRecord& record) {
  return exit_of(record);
}

std::string exit_words(const v1::Failure& failure) {
  return exit_of(failure);
}

std::string failure_words(const v1::FailureRecord& record) {
  std::string text = exit_words(record);
  const std::string& said =
      record.reason().empty() && text.empty() ? record.meaning() : record.reason();
  if (said.empty()) return text;
  if (!text.empty()) text += ": ";
  return text + printable_line(said, kReasonBytes);
}

std::string lift_words(const v1::Lift& lift, WallTime now) {
  return "lifted " + ago(lift.when_unix_ms(), now) + ": " +
         printable_line(lift.text(), kReasonBytes);
}

std::string memory_words(const v1::FailureMemory& memory) {
  std::string text;
  const auto add = [&text](bool known, std::uint64_t bytes, const char* what) {
    if (!known) return;
    if (!text.empty()) text += ", ";
    text += format_bytes(bytes) + " " + what;
  };
  add(memory.has_free_before(), memory.free_before(), "free before");
  add(memory.has_free_at_failure(), memory.free_at_failure(), "free at the failure");
  add(memory.has_predicted_charge(), memory.predicted_charge(), "predicted");
  add(memory.has_high_water(), memory.high_water(), "held at most");
  add(memory.has_failing_allocation(), memory.failing_allocation(), "refused");
  return text.empty() ? "not known" : text;
}

}  // namespace berth::cli
