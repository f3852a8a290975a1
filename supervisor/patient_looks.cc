#include "supervisor/patient_looks.h"

#include <utility>

namespace berth {

bool PatientLooks::begin(const std::string& key, Look look) {
  const auto [at, is_new] = entries_.try_emplace(key);
  if (!is_new) return false;
  at->second.look = std::move(look);
  queue_.push_back(key);
  begin_some();
  return true;
}

bool PatientLooks::late(const std::string& key) const {
  const auto at = entries_.find(key);
  return at != entries_.end() && at->second.late;
}

void PatientLooks::begin_some() {
  while (!queue_.empty() && in_time_ < options_.most_at_once && threads_ < options_.most_threads) {
    const std::string key = std::move(queue_.front());
    queue_.pop_front();
    run(key);
  }
}

void PatientLooks::run(const std::string& key) {
  Entry& entry = entries_.at(key);
  ++in_time_;
  ++threads_;
  entry.deadline = clock_.sleep_for(options_.patience, [this, key] { give_up(key); });
  run_alone_([weak = std::weak_ptr(self_), key, look = std::exchange(entry.look, nullptr),
              &clock = clock_] {
    clock.post([weak, key, finish = look()] {
      if (const auto self = weak.lock()) (*self)->end(key, finish);
    });
  });
}

void PatientLooks::give_up(const std::string& key) {
  const std::string late = key;  // the caller's goes with its timer
  Entry& entry = entries_.at(late);
  entry.late = true;
  entry.deadline.reset();
  --in_time_;
  begin_some();
}

void PatientLooks::end(const std::string& key, const Finish& finish) {
  if (!entries_.at(key).late) --in_time_;
  --threads_;
  entries_.erase(key);
  // Before the finish, which may want to look again at the same place.
  begin_some();
  if (finish) finish();
}

}  // namespace berth
