#include "supervisor/admin/convert_failure.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/text.h"
#include "common/units.h"
#include "common/wall_time.h"
#include "supervisor/core/entitlement.h"
#include "supervisor/core/failure.h"
#include "supervisor/rpc/exit_message.h"

namespace berth::admin {
namespace {

constexpr std::size_t kMostPathBytes = 4096;

std::int64_t to_ms(WallTime time) {
  return time.time_since_epoch().count();
}

void put_condition(core::ProvenanceField field, std::string value, v1::FailureRecord& to) {
  v1::Condition& condition = *to.add_conditions();
  condition.set_field(std::string(core::provenance_field_name(field)));
  condition.set_value(std::move(value));
}

std::string describe(const core::FileIdentity& file, bool paths) {
  std::string path = paths ? printable_line(file.path, kMostPathBytes) : "";
  // Of a split model only the first file carries size and time.
  if (file.size == 0 && file.modified_ns == 0) return path;
  const auto modified = std::chrono::floor<std::chrono::milliseconds>(
      std::chrono::sys_time<std::chrono::nanoseconds>(std::chrono::nanoseconds(file.modified_ns)));
  const std::string what =
      format_bytes(file.size) + ", written " + format_utc(WallTime(modified.time_since_epoch()));
  return path.empty() ? what : path + " (" + what + ")";
}

// The program and the files of its arguments.
std::string describe(const std::vector<core::ProgramFile>& files, bool paths) {
  std::string text;
  for (const core::ProgramFile& file : files) {
    std::string one =
        describe(core::FileIdentity{file.path, file.size, file.modified_ns, 0}, paths);
    if (file.inode == 0) one += one.empty() ? "not there" : " (not there)";
    if (!text.empty()) text += ", ";
    text += one;
  }
  return text.empty() ? "none" : text;
}

std::string describe(const std::vector<core::FileIdentity>& files, bool paths) {
  std::string text;
  if (files.size() != 1) text = std::to_string(files.size()) + " files";
  for (const core::FileIdentity& file : files) {
    const std::string one = describe(file, paths);
    if (one.empty()) continue;
    if (!text.empty()) text += ", ";
    text += one;
  }
  return text;
}

std::string describe(const std::map<std::string, std::uint64_t>& budget) {
  std::string text;
  for (const auto& [domain, bytes] : budget) {
    if (!text.empty()) text += ", ";
    text += domain + " " + format_bytes(bytes);
  }
  return text.empty() ? "none" : text;
}

std::string describe(const std::vector<core::DeviceIdentity>& devices) {
  std::string text;
  for (const core::DeviceIdentity& device : devices) {
    if (!text.empty()) text += ", ";
    text += device.id;
    if (!device.driver.empty()) text += " (" + device.driver + ")";
  }
  return text.empty() ? "the processor" : text;
}

// Only what is known: what is not can never lift the failure.
void put_conditions(const core::Provenance& from, bool paths, v1::FailureRecord& to) {
  using Field = core::ProvenanceField;
  if (from.runtime) put_condition(Field::kRuntime, *from.runtime, to);
  if (from.files) put_condition(Field::kFiles, describe(*from.files, paths), to);
  if (from.budget) put_condition(Field::kBudget, describe(*from.budget), to);
  if (from.sequences) put_condition(Field::kSequences, std::to_string(*from.sequences), to);
  if (from.window) put_condition(Field::kWindow, std::to_string(*from.window) + " tokens", to);
  if (from.kv_types) {
    put_condition(Field::kKvTypes, from.kv_types->keys + "/" + from.kv_types->values, to);
  }
  if (from.devices) put_condition(Field::kDevices, describe(*from.devices), to);
  if (from.launch_hash) {
    std::array<char, 17> hex{};
    std::snprintf(hex.data(), hex.size(), "%016llx",
                  static_cast<unsigned long long>(*from.launch_hash));
    put_condition(Field::kLaunch,
                  "command line, environment and template, hash " + std::string(hex.data()), to);
  }
  if (from.program) put_condition(Field::kProgram, describe(*from.program, paths), to);
}

void put_memory(const core::FailureMemory& from, v1::FailureMemory& to) {
  to.set_domain(from.domain);
  if (from.predicted_charge) to.set_predicted_charge(*from.predicted_charge);
  if (from.free_before) to.set_free_before(*from.free_before);
  if (from.free_at_failure) to.set_free_at_failure(*from.free_at_failure);
  if (from.high_water) to.set_high_water(*from.high_water);
  if (from.failing_allocation) to.set_failing_allocation(*from.failing_allocation);
}

void put_lift(const core::Lift& from, const core::Caller& caller, v1::Lift& to) {
  to.set_when_unix_ms(to_ms(from.when));
  to.set_cause(std::string(core::lift_cause_name(from.cause)));
  if (!core::may_know_failures(caller)) return;
  if (from.moved) to.set_field(std::string(core::provenance_field_name(from.moved->field)));
  to.set_text(core::text_for(core::to_string(from), Reason::kLoadFailed, caller));
}

}  // namespace

v1::FailureRecord to_proto(const core::FailureRecord& record, const core::Caller& caller) {
  v1::FailureRecord to;
  to.set_id(record.id.to_string());
  to.set_model(record.model);
  to.set_reason(core::text_for(record.reason, Reason::kLoadFailed, caller));
  to.set_instance_id(record.instance.to_string());
  to.set_started_unix_ms(to_ms(record.started));
  to.set_ended_unix_ms(to_ms(record.ended));
  if (record.lifted) put_lift(*record.lifted, caller, *to.mutable_lifted());
  if (!core::may_know_failures(caller)) return to;
  to.set_class_(std::string(core::failure_class_name(record.failure_class)));
  to.set_meaning(std::string(core::failure_class_sentence(record.failure_class)));
  if (record.exit) rpc::put_exit(*record.exit, to);
  for (const core::FailureMemory& memory : record.memory) put_memory(memory, *to.add_memory());
  to.set_failing_domain(record.failing_domain);
  put_conditions(record.provenance, caller.admin(), to);
  if (!record.lifted) {
    to.set_way_out(core::way_out(record));
    to.set_outlives_restart(core::outlives_restart(record));
  }
  if (!caller.admin()) return to;
  // Both may be anything, and a message's text must be UTF-8.
  for (const std::string& word : record.command) {
    to.add_command(printable_line(word, core::kFailureArgumentBytes));
  }
  for (const std::string& variable : record.environment) {
    to.add_environment(printable_line(variable, core::kFailureArgumentBytes));
  }
  for (const std::string& line : record.log_tail) to.add_log_tail(line);
  return to;
}

v1::PastLoad to_proto(const store::LoadRecord& load, const core::Caller& caller) {
  v1::PastLoad to;
  to.set_instance_id(load.id);
  to.set_started_unix_ms(to_ms(load.started));
  if (load.ready) to.set_ready_unix_ms(to_ms(*load.ready));
  if (load.ended) to.set_ended_unix_ms(to_ms(*load.ended));
  to.set_outcome(load.outcome);
  to.set_reason(core::text_for(load.reason, Reason::kLoadFailed, caller));
  to.set_load_ms(static_cast<std::uint64_t>(std::max<std::int64_t>(load.load_ms, 0)));
  if (!core::may_know_failures(caller)) return to;
  to.set_class_(load.failure_class);
  to.set_exit(load.exit);
  return to;
}

}  // namespace berth::admin
