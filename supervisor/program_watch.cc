#include "supervisor/program_watch.h"

#include <utility>

#include "supervisor/catalog/config.h"
#include "supervisor/program_look.h"

namespace berth {
namespace {

struct Command {
  std::string model;
  catalog::ModelSettings settings;
};

std::vector<Command> commands_of(const catalog::Catalog& catalog) {
  std::vector<Command> commands;
  for (const auto& model : catalog.models()) {
    if (model->settings.kind != catalog::Kind::kCommand) continue;
    commands.push_back({model->name, model->settings});
  }
  return commands;
}

// Without inotify the sweep finds what changes.
std::optional<catalog::DirectoryWatch> watch_beside(const std::vector<std::string>& files) {
  if (files.empty()) return std::nullopt;
  catalog::Config config;
  for (const std::string& file : files) config.models.emplace_back().path = file;
  Result<catalog::DirectoryWatch> watch = catalog::DirectoryWatch::open(config);
  if (!watch) return std::nullopt;
  return *std::move(watch);
}

}  // namespace

void ProgramWatch::start(std::function<void()> done) {
  started_ = true;
  first_done_ = std::move(done);
  start_deadline_ = parts_.clock.sleep_for(kStartWait, [this] {
    if (auto first = std::exchange(first_done_, nullptr)) first();
  });
  look();
}

void ProgramWatch::look() {
  if (!started_) return;
  quiet_.reset();
  if (looking_) {
    again_ = true;
    return;
  }
  looking_ = true;
  looked_ = parts_.clock.now();
  parts_.run_alone([self = Self(self_), commands = commands_of(*parts_.catalog()),
                    environment = environment_, &clock = parts_.clock] {
    auto seen = std::make_shared<Seen>();
    std::vector<std::string> watched;
    for (const Command& command : commands) {
      const ProgramLook found = look_at_program(command.settings, *environment);
      watched.insert(watched.end(), found.watched.begin(), found.watched.end());
    }
    // The watch comes first, so that what changes during the look is seen.
    seen->watch = watch_beside(watched);
    seen->looked = clock.now();
    for (const Command& command : commands) {
      seen->programs[command.model] = look_at_program(command.settings, *environment).files;
    }
    clock.post([self, seen] {
      if (const auto there = self.lock()) (*there)->take(std::move(*seen));
    });
  });
}

void ProgramWatch::look_for_launch(const catalog::Model& model, std::function<void()> done) {
  if (launch_looks_ >= kMostLaunchLooks) return parts_.clock.post(std::move(done));
  ++launch_looks_;
  struct Wait {
    std::function<void()> done;
    Timer deadline;
    void end() {
      deadline.reset();
      if (const auto tell = std::exchange(done, nullptr)) tell();
    }
  };
  const auto wait = std::make_shared<Wait>();
  wait->done = std::move(done);
  wait->deadline = parts_.clock.sleep_for(kLaunchWait, [weak = std::weak_ptr<Wait>(wait)] {
    if (const auto late = weak.lock()) late->end();
  });
  parts_.run_alone([self = Self(self_), wait, name = model.name, settings = model.settings,
                    environment = environment_, &clock = parts_.clock] {
    const SteadyTime looked = clock.now();
    auto files = look_at_program(settings, *environment).files;
    clock.post([self, wait, name, files = std::move(files), looked] {
      const auto there = self.lock();
      if (!there) return;
      --(*there)->launch_looks_;
      (*there)->keep(name, files, looked);
      wait->end();
    });
  });
}

void ProgramWatch::take(Seen seen) {
  looking_ = false;
  bool changed = false;
  for (auto& [model, files] : seen.programs) {
    changed = keep(model, std::move(files), seen.looked) || changed;
  }
  std::erase_if(known_, [&seen](const auto& one) {
    return !seen.programs.contains(one.first) && one.second.looked <= seen.looked;
  });
  readable_.reset();  // before the descriptor that it waits on goes
  watch_ = std::move(seen.watch);
  wait_for_changes();
  sweep_ = parts_.clock.sleep_for(kSweepPeriod, [this] { look(); });
  if (changed && parts_.on_changed) parts_.on_changed();
  start_deadline_.reset();
  if (auto first = std::exchange(first_done_, nullptr)) first();
  if (std::exchange(again_, false)) look();
}

void ProgramWatch::wait_for_changes() {
  if (!watch_) return;
  readable_.reset();  // one wait at a time: a descriptor can be lent only once
  readable_ = parts_.on_readable(watch_->fd(), [this] {
    if (watch_->drain()) {
      quiet_ = parts_.clock.sleep_for(kQuietTime, [this] { look(); });
    }
    wait_for_changes();
  });
}

void ProgramWatch::standing_met() {
  if (looking_ || !started_) return;
  if (looked_ && parts_.clock.now() - *looked_ < kLeastPause) return;
  look();
}

bool ProgramWatch::keep(const std::string& model, std::vector<core::ProgramFile> files,
                        SteadyTime looked) {
  Known& known = known_[model];
  if (looked < known.looked) return false;
  known.looked = looked;
  if (known.files == files) return false;
  known.files = std::move(files);
  return true;
}

const std::vector<core::ProgramFile>* ProgramWatch::files_of(const std::string& model) const {
  const auto known = known_.find(model);
  return known == known_.end() ? nullptr : &known->second.files;
}

}  // namespace berth
