#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/event.h"
#include "common/uuid.h"
#include "supervisor/catalog/model.h"
#include "supervisor/command_runs.h"
#include "supervisor/core/memory/domain_table.h"
#include "supervisor/process/async.h"
#include "supervisor/process/log_cut.h"
#include "supervisor/process/log_file.h"
#include "supervisor/process/log_watch.h"
#include "supervisor/program_reader.h"
#include "supervisor/residency/residency.h"

namespace berth {

// Turns a model into a worker that can be launched: command line, environment, socket, log file;
// and keeps the log files of running workers within their bound (L10). Core strand only; what
// touches files runs on the pool, or, where they are a model's own program, on threads of its own.
class LaunchPreparer {
 public:
  struct Parts {
    Clock& clock;
    EventSink& events;
    process::RunBlocking run_blocking;
    std::string worker_program;            // absolute
    std::string shim_program;              // absolute; empty: not found, commands cannot be run
    std::vector<std::string> environment;  // berthd's own
    std::string run_dir;
    std::string mark_owner;  // process::mark_owner() of the state directory
    process::LogPolicy log;
    CommandRuns& commands;
    ProgramReader::Options programs = {};
    // Whether a load's watch reads that log (process::FileLogWatcher::reads). Null: never.
    std::function<bool(const std::string& path)> log_is_read{};
    // Of now, by which a plan's domains are libllama's devices. Empty: none are known.
    std::function<const core::DomainTable&()> domains{};
    std::uint64_t cut_over = process::kLongestLiveLog;
    std::uint64_t cut_keeps = process::kKeptOfLiveLog;
  };

  explicit LaunchPreparer(Parts parts);
  LaunchPreparer(const LaunchPreparer&) = delete;
  LaunchPreparer& operator=(const LaunchPreparer&) = delete;

  // As residency::Environment::prepare_launch. A log that cannot be written is no failure: the
  // worker then runs without one, and an event says so.
  void prepare(std::shared_ptr<const catalog::Model> model, const Uuid& instance,
               const residency::LaunchPlan& plan,
               std::function<void(Result<residency::PreparedLaunch>)> done);

  // As residency::Environment::log_tail. Of an instance that is not the model's newest there are no
  // lines: those that it wrote cannot be told from the newer one's any more (L24).
  void log_tail(const std::string& model, const Uuid& instance,
                std::function<void(std::vector<std::string>)> done);

  // That log was cut (L10): an event says so.
  void tell_cut(const std::string& model, std::uint64_t size_before);
  // That log is too long and cannot be cut: an event says so, once until it is cut again.
  void tell_uncut(const std::string& model, const std::string& problem);

 private:
  // The launch of a command on its way through the steps, which take turns on the core strand and
  // where each of them may block.
  struct CommandWork;
  void prepare_command_model(std::shared_ptr<const catalog::Model> model, const Uuid& instance,
                             std::function<void(Result<residency::PreparedLaunch>)> done);
  // A launch that was interrupted may be overtaken by the model's next one, whose port, log and key
  // it must not touch. Whether that is so; then it has been ended.
  [[nodiscard]] bool gave_up(const CommandWork& work) const;
  void find_command(const std::shared_ptr<CommandWork>& work);
  void open_command_log(const std::shared_ptr<CommandWork>& work);
  void finish_command(const std::shared_ptr<CommandWork>& work);
  // By its environment the next run of berthd finds what this instance leaves behind (L4).
  void mark(const std::string& instance, residency::PreparedLaunch& prepared) const;
  // The launch's log, or none and an event that says so.
  void take_log(const std::string& model, const std::string& instance,
                Result<process::OpenedLog> log, residency::PreparedLaunch& prepared);
  // Where that instance writes; null: nowhere, or it is not the model's newest.
  [[nodiscard]] const process::LogPlace* place_of(const std::string& model,
                                                  const std::string& instance) const;
  void watch_sizes();
  struct SizeLook;
  static void cut_long_ones(SizeLook& look);

  struct NewestLog {
    std::string instance;
    std::optional<process::LogPlace> place;  // absent: none, or not opened yet
  };

  Parts parts_;
  ProgramReader programs_;
  std::map<std::string, NewestLog> logs_;  // by model
  std::set<std::string> uncut_;            // models of which tell_uncut() has spoken
  Timer sizes_;
};

}  // namespace berth
