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
#include "supervisor/process/async.h"

namespace berth {

// Knows with which files each command model is started (L19), and sees when they change (L23):
// through inotify, every 30 s where nothing is reported, with each new catalogue, and soon after a
// request met a standing failure. A file system that hangs costs a thread or two and no more: what
// is known stays. Core strand only; what comes back after its end is dropped.
class ProgramWatch {
 public:
  static constexpr Duration kSweepPeriod = std::chrono::seconds(30);
  static constexpr Duration kStartWait = std::chrono::seconds(5);
  // A program that is being written reports several changes.
  static constexpr Duration kQuietTime = std::chrono::milliseconds(50);
  // Between the looks that requests ask for.
  static constexpr Duration kLeastPause = std::chrono::seconds(1);
  static constexpr Duration kLaunchWait = std::chrono::seconds(1);
  // Looks for launches at once; beyond those what is known has to do.
  static constexpr int kMostLaunchLooks = 4;

  struct Parts {
    Clock& clock;
    process::RunBlocking run_alone;  // runs what may never return
    process::OnReadable on_readable;
    std::vector<std::string> environment;  // berthd's own
    std::function<std::shared_ptr<const catalog::Catalog>()> catalog;
    std::function<void()> on_changed;  // a model has another program than was known
  };

  explicit ProgramWatch(Parts parts)
      : parts_(std::move(parts)),
        environment_(
            std::make_shared<const std::vector<std::string>>(std::move(parts_.environment))) {}
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
  // is about. `done` after that, or after kLaunchWait where it takes longer; never from within the
  // call.
  void look_for_launch(const catalog::Model& model, std::function<void()> done);

  // Null: never seen, or no command. Valid until the next call.
  [[nodiscard]] const std::vector<core::ProgramFile>* files_of(const std::string& model) const;

 private:
  struct Known {
    std::vector<core::ProgramFile> files;
    SteadyTime looked{};
  };
  // What comes back from the pool.
  struct Seen {
    std::map<std::string, std::vector<core::ProgramFile>> programs;  // by model
    std::optional<catalog::DirectoryWatch> watch;
    SteadyTime looked{};
  };

  using Self = std::weak_ptr<ProgramWatch*>;

  void take(Seen seen);
  void wait_for_changes();
  // An older look never replaces a newer one. Whether something else is known now.
  bool keep(const std::string& model, std::vector<core::ProgramFile> files, SteadyTime looked);

  Parts parts_;
  const std::shared_ptr<const std::vector<std::string>> environment_;
  std::map<std::string, Known> known_;  // by model
  bool started_ = false;
  bool looking_ = false;
  bool again_ = false;
  int launch_looks_ = 0;
  std::optional<SteadyTime> looked_;  // when the last look began
  std::function<void()> first_done_;
  std::optional<catalog::DirectoryWatch> watch_;
  Timer start_deadline_;
  Timer readable_;
  Timer quiet_;
  Timer sweep_;
  const std::shared_ptr<ProgramWatch*> self_ = std::make_shared<ProgramWatch*>(this);
};

}  // namespace berth
