#include "supervisor/leftover_cleaner.h"

#include <sys/types.h>

#include <map>
#include <set>
#include <utility>

namespace berth {

void LeftoverCleaner::start(std::function<void()> done) {
  done_ = std::move(done);
  deadline_ = parts_.clock.sleep_for(kRecordsWait, [this] {
    parts_.events.emit_typed(events::ServerDegraded{
        .part = "store",
        .problem = "Which processes an earlier run has left behind is not known: the database does "
                   "not answer. What it says later is done then."});
    clean({}, false);
  });
  parts_.store.processes([weak = std::weak_ptr(self_)](Result<Records> records) {
    if (const auto self = weak.lock()) (*self)->on_records(std::move(records));
  });
}

void LeftoverCleaner::on_records(Result<Records> records) {
  deadline_.reset();
  if (!records) {
    parts_.events.emit_typed(events::ServerDegraded{
        .part = "store",
        .problem = "Which processes an earlier run has left behind is not known: " +
                   records.error().message});
    if (!began_) clean({}, false);
    return;
  }
  if (!began_) return clean(*std::move(records), false);
  // Workers were launched meanwhile, and are in the store, too.
  std::erase_if(*records, [this](const store::ProcessRecord& one) { return of_this_run(one); });
  if (!records->empty()) clean(*std::move(records), true);
}

bool LeftoverCleaner::of_this_run(const store::ProcessRecord& record) const {
  return record.boot_id == parts_.boot_id && record.start_ticks >= parts_.start_ticks;
}

void LeftoverCleaner::clean(Records records, bool late) {
  began_ = true;
  parts_.run_blocking([this, records = std::move(records), late] {
    std::vector<process::Leftover> leftovers;
    leftovers.reserve(records.size());
    for (const store::ProcessRecord& record : records) {
      leftovers.push_back({static_cast<pid_t>(record.pid), record.start_ticks, record.boot_id});
    }
    auto ends = parts_.kill(leftovers);
    // By their marks those of this run would be found, too.
    auto marked = late ? std::vector<process::MarkedLeftover>() : parts_.kill_marked();
    parts_.clock.post([this, records, ends = std::move(ends), marked = std::move(marked)] {
      tell(records, ends, marked);
      if (const auto done = std::exchange(done_, nullptr)) done();
    });
  });
}

void LeftoverCleaner::tell(const Records& records, const std::vector<process::LeftoverEnd>& ends,
                           const std::vector<process::MarkedLeftover>& marked) {
  std::map<std::string, std::string> models;
  std::set<std::string> told;  // an instance is told of once, however many processes it left
  const auto say = [&](std::int64_t pid, const std::string& instance, bool stuck) {
    if (!told.insert(instance).second) return;
    if (stuck) {
      parts_.events.emit_typed(
          events::InstanceStuck{.model = models[instance], .instance = instance, .pid = pid});
    } else {
      parts_.events.emit_typed(
          events::LeftoverKilled{.pid = pid, .instance = instance, .model = models[instance]});
    }
  };
  const auto say_marked = [&](process::LeftoverEnd end) {
    for (const process::MarkedLeftover& one : marked) {
      if (one.end == end) say(one.pid, one.instance, end == process::LeftoverEnd::kStuck);
    }
  };
  for (const store::ProcessRecord& record : records) models[record.instance] = record.model;
  say_marked(process::LeftoverEnd::kStuck);
  for (std::size_t i = 0; i < records.size(); ++i) {
    const store::ProcessRecord& record = records[i];
    const bool stuck = ends[i] == process::LeftoverEnd::kStuck;
    // One that is stuck is looked for again at the next start.
    if (!stuck) parts_.store.remove_process(record.instance);
    if (ends[i] != process::LeftoverEnd::kGone) say(record.pid, record.instance, stuck);
  }
  say_marked(process::LeftoverEnd::kKilled);
}

}  // namespace berth
