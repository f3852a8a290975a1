#include "supervisor/program_watch.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "supervisor/catalog/config.h"
#include "supervisor/program_look.h"

namespace berth {
namespace {

bool is_command(const catalog::Model& model) {
  return model.settings.kind == catalog::Kind::kCommand;
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

struct ProgramWatch::LaunchWait {
  catalog::ModelSettings settings;
  SteadyTime began{};
  std::function<void()> done;  // empty: nobody waits any more
  Timer deadline;

  void end() {
    deadline.reset();
    if (const auto tell = std::exchange(done, nullptr)) tell();
  }
};

ProgramWatch::ProgramWatch(Parts parts)
    : parts_(std::move(parts)),
      environment_(std::make_shared<const std::vector<std::string>>(std::move(parts_.environment))),
      looks_(parts_.clock, parts_.run_alone, {.patience = kStartWait}),
      launch_looks_(parts_.clock, parts_.run_alone, {.patience = kLaunchWait}) {}

void ProgramWatch::start(std::function<void()> done) {
  started_ = true;
  first_done_ = std::move(done);
  look();
  const bool nothing = looks_.idle();
  start_deadline_ =
      parts_.clock.sleep_for(nothing ? Duration::zero() : kStartWait, [this] { end_start(); });
}

void ProgramWatch::end_start() {
  start_deadline_.reset();
  if (auto first = std::exchange(first_done_, nullptr)) first();
}

void ProgramWatch::look() {
  if (!started_) return;
  sweep_ = parts_.clock.sleep_for(kSweepPeriod, [this] { look(); });
  const std::shared_ptr<const catalog::Catalog> catalog = parts_.catalog();
  for (auto at = programs_.begin(); at != programs_.end();) {
    const auto model = catalog->find(at->first);
    const bool gone = !model || !is_command(**model);
    if (gone) drop(at->second);
    at = gone ? programs_.erase(at) : std::next(at);
  }
  for (const auto& model : catalog->models()) {
    if (is_command(*model)) look_at(*model);
  }
}

void ProgramWatch::look_at(const catalog::Model& model) {
  Program& program = programs_[model.name];
  program.quiet.reset();
  if (looks_.busy(model.name)) {
    program.again = true;
    return;
  }
  program.again = false;
  program.began = parts_.clock.now();
  looks_.begin(model.name,
               [this, name = model.name, settings = model.settings, environment = environment_,
                watches = may_watch(program), &clock = parts_.clock] {
                 const auto seen = std::make_shared<Seen>();
                 // The watch comes first, so that what changes during the look is seen.
                 if (watches) {
                   seen->watch = watch_beside(look_at_program(settings, *environment).watched);
                 }
                 seen->looked = clock.now();
                 seen->files = look_at_program(settings, *environment).files;
                 return [this, name, seen] { take(name, *seen); };
               });
}

bool ProgramWatch::may_watch(const Program& program) const {
  if (program.watch) return true;
  const auto watched = std::ranges::count_if(
      programs_, [](const auto& one) { return one.second.watch.has_value(); });
  return static_cast<std::size_t>(watched) < kMostWatches;
}

void ProgramWatch::take(const std::string& model, Seen& seen) {
  const auto at = programs_.find(model);
  if (at != programs_.end()) {
    const bool changed = keep(model, seen);
    drop(at->second);
    at->second.watch = std::move(seen.watch);
    wait_for_changes(model);
    if (changed && parts_.on_changed) parts_.on_changed();
  }
  if (looks_.idle()) end_start();
  const auto now = programs_.find(model);
  if (now == programs_.end() || !now->second.again) return;
  if (const auto found = parts_.catalog()->find(model)) look_at(**found);
}

// The kernel takes some 20 ms to end an inotify instance.
void ProgramWatch::drop(Program& program) {
  program.readable.reset();  // before the descriptor that it waits on goes
  if (!program.watch) return;
  const auto old =
      std::make_shared<std::optional<catalog::DirectoryWatch>>(std::move(program.watch));
  program.watch.reset();
  parts_.run_blocking([old] { old->reset(); });
}

void ProgramWatch::wait_for_changes(const std::string& model) {
  Program& program = programs_.at(model);
  program.readable.reset();  // one wait at a time: a descriptor can be lent only once
  if (!program.watch) return;
  program.readable =
      parts_.on_readable(program.watch->fd(), [this, model] { on_report(std::string(model)); });
}

void ProgramWatch::on_report(const std::string& model) {
  const auto at = programs_.find(model);
  if (at == programs_.end() || !at->second.watch) return;
  Program& program = at->second;
  if (program.watch->drain() && !program.quiet.armed()) {
    SteadyTime when = parts_.clock.now() + kQuietTime;
    if (program.began) when = std::max(when, *program.began + kLeastPause);
    program.quiet = parts_.clock.sleep_until(when, [this, model] {
      if (const auto found = parts_.catalog()->find(model)) look_at(**found);
    });
  }
  wait_for_changes(model);
}

void ProgramWatch::standing_met() {
  if (!started_) return;
  const SteadyTime latest = parts_.clock.now() - kLeastPause;
  if (asked_ && *asked_ > latest) return;
  asked_ = parts_.clock.now();
  const std::shared_ptr<const catalog::Catalog> catalog = parts_.catalog();
  for (const auto& model : catalog->models()) {
    if (!is_command(*model) || looks_.busy(model->name)) continue;
    const auto at = programs_.find(model->name);
    if (at != programs_.end() && at->second.began && *at->second.began > latest) continue;
    look_at(*model);
  }
}

void ProgramWatch::look_for_launch(const catalog::Model& model, std::function<void()> done) {
  const SteadyTime began = parts_.clock.now();
  if (launch_looks_.late(model.name)) {
    launch_late(model.name, began);
    return parts_.clock.post(std::move(done));
  }
  const auto wait = std::make_shared<LaunchWait>();
  wait->settings = model.settings;
  wait->began = began;
  wait->done = std::move(done);
  wait->deadline = parts_.clock.sleep_for(
      kLaunchWait, [this, name = model.name, weak = std::weak_ptr<LaunchWait>(wait)] {
        const auto late = weak.lock();
        if (!late || !late->done) return;
        launch_late(name, late->began);
        late->end();
      });
  if (!launch_looks_.busy(model.name)) return begin_launch_look(model.name, model.settings, wait);
  // A launch whose place another takes was interrupted: nobody asks what it is about.
  const auto before = std::exchange(next_launches_[model.name], wait);
  if (before) parts_.clock.post([before] { before->end(); });
}

void ProgramWatch::begin_launch_look(const std::string& model,
                                     const catalog::ModelSettings& settings,
                                     const std::shared_ptr<LaunchWait>& wait) {
  launch_looks_.begin(
      model, [this, model, settings, wait, environment = environment_, &clock = parts_.clock] {
        const auto seen = std::make_shared<Seen>();
        seen->looked = clock.now();
        seen->files = look_at_program(settings, *environment).files;
        return [this, wait, model, seen] { launch_seen(wait, model, *seen); };
      });
}

void ProgramWatch::launch_seen(const std::shared_ptr<LaunchWait>& wait, const std::string& model,
                               Seen& seen) {
  const bool late = !wait->done;
  const bool changed = keep(model, seen);
  wait->end();
  if (late && changed && parts_.on_changed) parts_.on_changed();
  if (launch_looks_.busy(model)) return;  // what was told began the next
  const auto next = next_launches_.extract(model);
  if (next.empty()) return;
  if (next.mapped()->done) begin_launch_look(model, next.mapped()->settings, next.mapped());
}

void ProgramWatch::launch_late(const std::string& model, SteadyTime began) {
  const auto at = programs_.find(model);
  if (at != programs_.end() && at->second.looked < began) at->second.files.reset();
}

bool ProgramWatch::keep(const std::string& model, Seen& seen) {
  Program& known = programs_[model];
  if (seen.looked < known.looked) return false;
  known.looked = seen.looked;
  if (known.files == seen.files) return false;
  known.files = std::move(seen.files);
  return true;
}

const std::vector<core::ProgramFile>* ProgramWatch::files_of(const std::string& model) const {
  const auto known = programs_.find(model);
  if (known == programs_.end() || !known->second.files) return nullptr;
  return &*known->second.files;
}

}  // namespace berth
