#include "supervisor/store/sqlite_store.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "supervisor/store/database.h"

namespace berth::store {
namespace {

struct Write {
  std::function<Status(Database&)> work;
  // Kept in memory and tried again while the file takes nothing.
  bool wait = false;
};
// Gets the database, or why it cannot be asked.
using Read = std::function<void(Result<Database*>)>;

constexpr int kTries = 100;

struct Task {
  std::optional<Write> write;  // one of the two
  Read read;
};

}  // namespace

// The thread and its queue.
class RealStore::Worker {
 public:
  Worker(StoreOptions options, Clock& clock, std::unique_ptr<Database> database)
      : options_(std::move(options)), clock_(clock), database_(std::move(database)) {
    // Signals are for the main thread.
    sigset_t all{};
    sigset_t before{};
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { work(); });
    ::pthread_setname_np(thread_.native_handle(), "berth-store");
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  ~Worker() {
    {
      std::unique_lock lock(mutex_);
      stop_ = true;
      wake_.notify_all();
      if (!finished_.wait_for(lock, options_.close_wait, [this] { return done_; })) {
        abandon_ = true;
        database_->interrupt();
      }
    }
    thread_.join();
  }

  void write(Write write) {
    constexpr const char* kCause = "more is to be written than the disk takes";
    const std::lock_guard lock(mutex_);
    // What must not be lost has places of its own behind those that all others may fill.
    const std::size_t places = options_.queue + (write.wait ? options_.waiting : 0);
    if (queue_.size() < places) {
      queue_.push_back({std::move(write), nullptr});
      wake_.notify_one();
      return;
    }
    if (write.wait) failures_lost(1, kCause);
    lost(1, kCause);
  }

  void read(Read read) {
    const std::lock_guard lock(mutex_);
    if (queue_.size() < options_.queue) {
      queue_.push_back({std::nullopt, std::move(read)});
      wake_.notify_one();
      return;
    }
    read(fail(Reason::kStoreBusy, "The database has too much to do; try again in a moment."));
  }

  [[nodiscard]] Clock& clock() const { return clock_; }
  [[nodiscard]] const StoreOptions& options() const { return options_; }

  void tell(std::string problem) {
    if (!options_.on_degraded) return;
    clock_.post([report = options_.on_degraded, problem = std::move(problem)]() mutable {
      report(events::ServerDegraded{"store", std::move(problem)});
    });
  }

 private:
  // Records that are gone. With the mutex.
  void lost(std::size_t count, const std::string& cause) {
    lost_ += count;
    if (!std::exchange(degraded_, true))
      tell("What happens is not kept at present (" + cause + "); serving goes on.");
  }

  // Records of failures are among them, which nobody must think to be kept. With the mutex.
  void failures_lost(std::size_t count, const std::string& cause) {
    if (count == 0 || std::exchange(failures_lost_, true)) return;
    tell("Failures of loads are not kept (" + cause + "): a restart will not know them.");
  }

  void work() {
    while (std::optional<std::deque<Task>> batch = next_batch()) run(*batch);
    // The last try of what waits.
    resting_until_.reset();
    waiting_until_.reset();
    write_all({});
    if (!abandoned()) database_->close_well();
    const std::lock_guard lock(mutex_);
    done_ = true;
    finished_.notify_all();
  }

  // Absent at the end; empty when it is time to try again what waits.
  std::optional<std::deque<Task>> next_batch() {
    constexpr std::size_t kMost = 256;
    const std::optional<Duration> pause = until_retry();
    std::unique_lock lock(mutex_);
    const auto called = [this] { return stop_ || !queue_.empty(); };
    if (pause) {
      wake_.wait_for(lock, *pause, called);
    } else {
      wake_.wait(lock, called);
    }
    if (stop_ && queue_.empty()) return std::nullopt;
    std::deque<Task> batch;
    while (!queue_.empty() && batch.size() < kMost) {
      batch.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
    return batch;
  }

  // Absent: nothing waits.
  [[nodiscard]] std::optional<Duration> until_retry() const {
    constexpr Duration kLeast = std::chrono::milliseconds(10);
    if (waiting_.empty()) return std::nullopt;
    SteadyTime until = resting_until_.value_or(SteadyTime());
    if (waiting_until_) until = std::max(until, *waiting_until_);
    return std::max<Duration>(until - clock_.now(), kLeast);
  }

  [[nodiscard]] bool abandoned() {
    const std::lock_guard lock(mutex_);
    return abandon_;
  }

  void run(std::deque<Task>& batch) {
    std::vector<Write> writes;
    for (Task& task : batch) {
      if (task.write) {
        writes.push_back(std::move(*task.write));
        continue;
      }
      // A reader sees what was written before, and only what is kept.
      write_all(std::exchange(writes, {}));
      if (abandoned()) {
        task.read(fail(Reason::kShuttingDown, "The server is stopping."));
      } else {
        task.read(database_.get());
      }
    }
    write_all(std::move(writes));
  }

  void write_all(std::vector<Write> writes) {
    const auto waits = std::ranges::stable_partition(writes, std::logical_not<>(), &Write::wait);
    waiting_.insert(waiting_.end(), std::make_move_iterator(waits.begin()),
                    std::make_move_iterator(waits.end()));
    writes.erase(waits.begin(), waits.end());
    const std::size_t surplus =
        waiting_.size() > options_.waiting ? waiting_.size() - options_.waiting : 0;
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(surplus));
    if (surplus > 0) {
      const std::lock_guard lock(mutex_);
      failures_lost(surplus, "more of them wait than can be kept in memory");
    }
    if (writes.empty() && waiting_.empty()) return;
    if (resting_until_ && clock_.now() < *resting_until_) {
      const std::lock_guard lock(mutex_);
      lost_ += writes.size() + surplus;
      return;
    }
    if (abandoned()) return;
    const Status kept = write_waiting();
    if (auto wrote = transaction(writes); !wrote) {
      give_up(writes.size() + surplus, wrote.error().message);
      return;
    }
    if (!kept) {
      // Whether it is they that never work shows only where others do.
      const bool hopeless = !writes.empty() && ++tries_ >= kTries;
      const std::size_t gone = hopeless ? write_each_waiting() : 0;
      waiting_until_ = clock_.now() + options_.retry_after;
      const std::lock_guard lock(mutex_);
      failures_lost(gone, kept.error().message);
      lost(gone + surplus, kept.error().message);
      return;
    }
    resting_until_.reset();
    if (!waiting_.empty()) return;
    const std::lock_guard lock(mutex_);
    if (!degraded_) return;
    tell("What happens is kept again; " + std::to_string(lost_) + " records were not.");
    degraded_ = false;
    failures_lost_ = false;
    lost_ = 0;
  }

  // Apart from the others: what never works must not take them along.
  Status write_waiting() {
    if (waiting_until_ && clock_.now() < *waiting_until_) return {};
    waiting_until_.reset();
    if (auto wrote = transaction(waiting_); !wrote) {
      database_->rollback();
      return wrote;
    }
    waiting_.clear();
    tries_ = 0;
    return {};
  }

  // What never works is given up, and does not take the others along. How many those are.
  std::size_t write_each_waiting() {
    std::size_t gone = 0;
    for (Write& write : std::exchange(waiting_, {})) {
      if (transaction({std::move(write)})) continue;
      database_->rollback();
      ++gone;
    }
    tries_ = 0;
    return gone;
  }

  void give_up(std::size_t gone, const std::string& cause) {
    database_->rollback();
    resting_until_ = clock_.now() + options_.retry_after;
    const std::lock_guard lock(mutex_);
    lost(gone, cause);
  }

  Status transaction(const std::vector<Write>& writes) {
    if (writes.empty()) return {};
    if (auto begun = database_->begin(); !begun) return begun;
    for (const Write& write : writes) {
      if (auto wrote = write.work(*database_); !wrote) return wrote;
    }
    constexpr std::size_t kPruneEvery = 512;
    since_prune_ += writes.size();
    if (since_prune_ >= kPruneEvery) {
      const WallTime oldest = clock_.wall_now() - options_.events_age;
      if (auto pruned = database_->prune(options_.events_kept, oldest); !pruned) return pruned;
      since_prune_ = 0;
    }
    return database_->commit();
  }

  const StoreOptions options_;
  Clock& clock_;
  const std::unique_ptr<Database> database_;

  // The thread's own.
  std::optional<SteadyTime> resting_until_;
  std::optional<SteadyTime> waiting_until_;  // as long as what waits is not tried
  std::size_t since_prune_ = 0;
  std::vector<Write> waiting_;  // in the order of the calls
  int tries_ = 0;               // of what waits

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable finished_;
  std::deque<Task> queue_;
  bool degraded_ = false;       // and that was told
  bool failures_lost_ = false;  // and that, too
  std::size_t lost_ = 0;
  bool stop_ = false;
  bool abandon_ = false;
  bool done_ = false;

  std::thread thread_;
};

namespace {

// A reader that asks the database and posts the answer.
template <typename Answer, typename Ask>
Read reader(Clock& clock, std::function<void(Result<Answer>)> done, Ask ask) {
  return [&clock, done = std::move(done), ask = std::move(ask)](Result<Database*> database) {
    Result<Answer> answer = database ? ask(**database) : fail(std::move(database).error());
    clock.post([done, answer = std::move(answer)]() mutable { done(std::move(answer)); });
  };
}

}  // namespace

RealStore::RealStore(std::unique_ptr<Worker> worker, std::uint64_t last_sequence)
    : worker_(std::move(worker)), last_sequence_(last_sequence) {}

RealStore::~RealStore() = default;

Result<std::unique_ptr<RealStore>> RealStore::open(StoreOptions options, Clock& clock) {
  auto opened = Database::open(options.path, clock.wall_now());
  if (!opened) return fail(std::move(opened).error());
  const auto last = opened->database->last_sequence();
  if (!last) return fail(last.error());
  auto worker = std::make_unique<Worker>(std::move(options), clock, std::move(opened->database));
  if (!opened->moved_aside.empty()) {
    worker->tell("The database was damaged (" + opened->damage + "); it is now " +
                 opened->moved_aside + ", and a new one was begun.");
  }
  return std::unique_ptr<RealStore>(new RealStore(std::move(worker), *last));
}

void RealStore::put_load(LoadRecord record) {
  worker_->write({[record = std::move(record), keep = worker_->options().loads_per_model](
                      Database& database) { return database.put_load(record, keep); }});
}

void RealStore::loads(std::string model, std::size_t limit,
                      std::function<void(Result<std::vector<LoadRecord>>)> done) {
  worker_->read(reader<std::vector<LoadRecord>>(
      worker_->clock(), std::move(done), [model = std::move(model), limit](Database& database) {
        return database.loads(model, limit);
      }));
}

void RealStore::put_failure(core::FailureRecord record) {
  worker_->write({[record = std::move(record), keep = worker_->options().failures_per_model](
                      Database& database) { return database.put_failure(record, keep); },
                  true});
}

void RealStore::lift_failure(Uuid id, core::Lift lift) {
  worker_->write(
      {[id, lift = std::move(lift)](Database& database) { return database.lift_failure(id, lift); },
       true});
}

void RealStore::failures(std::string model, std::size_t limit,
                         std::function<void(Result<std::vector<core::FailureRecord>>)> done) {
  worker_->read(reader<std::vector<core::FailureRecord>>(
      worker_->clock(), std::move(done), [model = std::move(model), limit](Database& database) {
        return database.failures(model, limit);
      }));
}

void RealStore::standing_failures(
    std::function<void(Result<std::vector<core::FailureRecord>>)> done) {
  worker_->read(reader<std::vector<core::FailureRecord>>(
      worker_->clock(), std::move(done),
      [](Database& database) { return database.standing_failures(); }));
}

void RealStore::put_process(ProcessRecord record) {
  worker_->write(
      {[record = std::move(record)](Database& database) { return database.put_process(record); }});
}

void RealStore::remove_process(std::string instance) {
  worker_->write({[instance = std::move(instance)](Database& database) {
    return database.remove_process(instance);
  }});
}

void RealStore::processes(std::function<void(Result<std::vector<ProcessRecord>>)> done) {
  worker_->read(reader<std::vector<ProcessRecord>>(
      worker_->clock(), std::move(done), [](Database& database) { return database.processes(); }));
}

void RealStore::put_event(Event event) {
  worker_->write(
      {[event = std::move(event)](Database& database) { return database.put_event(event); }});
}

void RealStore::events_since(WallTime since, std::string prefix, std::size_t limit,
                             std::function<void(Result<std::vector<StoredEvent>>)> done) {
  worker_->read(reader<std::vector<StoredEvent>>(
      worker_->clock(), std::move(done),
      [since, prefix = std::move(prefix), limit](Database& database) {
        return database.events_since(since, prefix, limit);
      }));
}

}  // namespace berth::store
