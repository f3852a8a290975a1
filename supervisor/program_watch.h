#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "supervisor/catalog/catalog.h"
#include "supervisor/catalog/directory_watch.h"
#include "supervisor/core/ledger/provenance.h"
#include "supervisor/patient_looks.h"
#include "supervisor/process/async.h"

namespace berth {

// Knows with which files each command model is started (L19), and sees when they change (L23):
// through inotify, every 30 s where nothing is reported, with each new catalogue, and soon after a
// request met a standing failure. Each model is looked at for itself: where its file system hangs,
// what is known of it stays, and the others do not wait. Core strand only; what comes back after
// its end is dropped.
class ProgramWatch {
 public:
  static constexpr Duration kSweepPeriod = std::chrono::seconds(30);
  static constexpr Duration kStartWait = std::chrono::seconds(5);
  // A program that is being written reports several changes.
  static constexpr Duration kQuietTime = std::chrono::milliseconds(50);
  // Between two looks at a model that requests or changes ask for: a program may write a log to
  // where an argument says all the time.
  static constexpr Duration kLeastPause = std::chrono::seconds(1);
  static constexpr Duration kLaunchWait = std::chrono::seconds(1);
  // Models that are watched through inotify; the sweep finds the changes of the others. A user has
  // 128 instances of it, for all his programs.
  static constexpr std::size_t kMostWatches = 32;

  struct Parts {
    Clock& clock;
    process::RunBlocking run_alone;     // runs what may never return
    process::RunBlocking run_blocking;  // the pool
    process::OnReadable on_readable;
    std::vector<std::string> environment;  // berthd's own
    std::function<std::shared_ptr<const catalog::Catalog>()> catalog;
    std::function<void()> on_changed;  // a model has another program than was known
  };

  explicit ProgramWatch(Parts parts);
  ProgramWatch(const ProgramWatch&) = delete;
  ProgramWatch& operator=(const ProgramWatch&) = delete;
  ~ProgramWatch() = default;

  // Looks, and watches from then on; `done` after the first look, or after kStartWait where that
  // takes longer. Once.
  void start(std::function<void()> done);
  // Looks as soon as possible, once more where it is looking already. Before start(): nothing.
  void look();
  // A failure refused a request: looks, unless it did a moment ago.
  void standing_met();

  // Before that model's program is executed: looks at it, so that files_of() tells what the launch
  // is about. `done` after that, or after kLaunchWait where it takes longer: then nothing is known
  // until that look, or another, is over. Never from within the call.
  void look_for_launch(const catalog::Model& model, std::function<void()> done);

  // Null: not known, or no command. Valid until the next call.
  [[nodiscard]] const std::vector<core::ProgramFile>* files_of(const std::string& model) const;

 private:
  struct Program {
    std::optional<std::vector<core::ProgramFile>> files;
    SteadyTime looked{};              // when these were found
    std::optional<SteadyTime> began;  // the last look, but for launches
    bool again = false;               // looked at anew when that is over
    std::optional<catalog::DirectoryWatch> watch;
    Timer readable;
    Timer quiet;
  };
  // What comes back from a look.
  struct Seen {
    std::vector<core::ProgramFile> files;
    std::optional<catalog::DirectoryWatch> watch;
    SteadyTime looked{};
  };
  struct LaunchWait;

  void look_at(const catalog::Model& model);
  void take(const std::string& model, Seen& seen);
  void begin_launch_look(const std::string& model, const catalog::ModelSettings& settings,
                         const std::shared_ptr<LaunchWait>& wait);
  void launch_seen(const std::shared_ptr<LaunchWait>& wait, const std::string& model, Seen& seen);
  void launch_late(const std::string& model, SteadyTime began);
  void wait_for_changes(const std::string& model);
  void on_report(const std::string& model);
  void drop(Program& program);
  [[nodiscard]] bool may_watch(const Program& program) const;
  // An older look never replaces a newer one. Whether something else is known now.
  bool keep(const std::string& model, Seen& seen);
  void end_start();

  Parts parts_;
  const std::shared_ptr<const std::vector<std::string>> environment_;
  PatientLooks looks_;
  PatientLooks launch_looks_;
  std::map<std::string, Program> programs_;  // by model
  // Launches that came while an earlier one of their model was looked at: the newest of each.
  std::map<std::string, std::shared_ptr<LaunchWait>> next_launches_;
  bool started_ = false;
  std::optional<SteadyTime> asked_;  // when a request last made it look
  std::function<void()> first_done_;
  Timer start_deadline_;
  Timer sweep_;
};

}  // namespace berth
