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
  bool failure = false;  // about a failure: it is the last to be given up
};
// Gets the database, or why it cannot be asked.
using Read = std::function<void(Result<Database*>)>;

std::string without_period(std::string text) {
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// Writes that the file does not take yet, in the order of the calls.
struct Line {
  std::deque<Write> writes;
  std::optional<SteadyTime> retry_at;
  Duration pause{};  // before that
};

struct Task {
  std::optional<Write> write;  // one of the two
  Read read;
};

}  // namespace

// The thread and its queue.
class RealStore::Worker {
 public:
  Worker(StoreOptions options, Clock& clock, Database::Opened opened)
      : options_(std::move(options)),
        clock_(clock),
        database_(std::move(opened.database)),
        without_file_(std::move(opened.without_file)) {
    // Before the thread, which may have better news.
    tell_of_damage(opened);
    if (!without_file_.empty()) {
      const std::lock_guard lock(mutex_);
      lost(0, without_file_);
    }
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
    const std::lock_guard lock(mutex_);
    // What must not be lost has places of its own behind those that all others may fill.
    const std::size_t places = options_.queue + (write.failure ? options_.waiting : 0);
    if (queue_.size() < places || make_place()) {
      queue_.push_back({std::move(write), nullptr});
      wake_.notify_one();
      return;
    }
    if (write.failure) failures_lost(1, kTooMuch);
    lost(1, kTooMuch);
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
  void tell_of_damage(const Database::Opened& opened) {
    if (opened.moved_aside.empty()) return;
    tell("The database was damaged (" + opened.damage + "); it is now " + opened.moved_aside +
         ", and a new one was begun.");
  }

  // Gives up the oldest write that may be. With the mutex.
  bool make_place() {
    const auto oldest = std::ranges::find_if(
        queue_, [](const Task& task) { return task.write && !task.write->failure; });
    if (oldest == queue_.end()) return false;
    queue_.erase(oldest);
    lost(1, kTooMuch);
    return true;
  }

  // The file takes nothing, and so many records are gone. With the mutex.
  void lost(std::size_t count, const std::string& cause) {
    lost_ += count;
    if (std::exchange(degraded_, true)) return;
    tell("What happens is not kept at present (" + without_period(cause) +
         "). It waits in memory, of which the oldest is given up first; serving goes on.");
  }

  // Records of failures are among them, which nobody must think to be kept. With the mutex.
  void failures_lost(std::size_t count, const std::string& cause) {
    if (count == 0 || std::exchange(failures_lost_, true)) return;
    tell("Failures of loads are not kept (" + without_period(cause) +
         "): a restart will not know them.");
  }

  void work() {
    while (std::optional<std::deque<Task>> batch = next_batch()) run(*batch);
    // The last try of what waits.
    failures_.retry_at.reset();
    others_.retry_at.reset();
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
    std::optional<SteadyTime> first;
    for (const Line* line : {&failures_, &others_}) {
      if (line->retry_at) first = std::min(first.value_or(*line->retry_at), *line->retry_at);
    }
    if (!first) return std::nullopt;
    return std::max<Duration>(*first - clock_.now(), kLeast);
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
    for (Write& write : writes) {
      (write.failure ? failures_ : others_).writes.push_back(std::move(write));
    }
    const std::size_t failures_gone = cut(failures_, options_.waiting);
    const std::size_t gone = cut(others_, options_.queue) + failures_gone;
    if (gone > 0) {
      const std::lock_guard lock(mutex_);
      if (failures_gone > 0) failures_lost(failures_gone, kTooMuch);
      lost(gone, kTooMuch);
    }
    // Apart from each other: what does not work must not take the rest along.
    for (Line* line : {&failures_, &others_}) {
      if (abandoned()) return;
      attempt(*line);
    }
    if (!failures_.writes.empty() || !others_.writes.empty()) return;
    const std::lock_guard lock(mutex_);
    if (!degraded_ || !without_file_.empty()) return;
    tell("What happens is kept again; " + std::to_string(lost_) + " records were not.");
    degraded_ = false;
    failures_lost_ = false;
    lost_ = 0;
  }

  // Gives up the oldest beyond `bound`. How many those are.
  static std::size_t cut(Line& line, std::size_t bound) {
    const std::size_t surplus = line.writes.size() > bound ? line.writes.size() - bound : 0;
    line.writes.erase(line.writes.begin(),
                      line.writes.begin() + static_cast<std::ptrdiff_t>(surplus));
    return surplus;
  }

  // Writes what waits, if it is time to.
  void attempt(Line& line) {
    constexpr int kLongest = 12;  // pauses
    if (line.writes.empty() || (line.retry_at && clock_.now() < *line.retry_at)) return;
    Status wrote = transaction(line.writes);
    if (!wrote) {
      database_->rollback();
      // One of them is refused whatever the disk does.
      if (wrote.error().reason == Reason::kInternal) wrote = write_each(line);
    }
    if (wrote) {
      line = {};
      return;
    }
    line.pause =
        std::clamp<Duration>(2 * line.pause, options_.retry_after, kLongest * options_.retry_after);
    line.retry_at = clock_.now() + line.pause;
    const std::lock_guard lock(mutex_);
    lost(0, wrote.error().message);
  }

  // One by one. Those that never work are given up, and do not take the others along; those that
  // may work later stay. Errors: why they stay.
  Status write_each(Line& line) {
    while (!line.writes.empty()) {
      const bool failure = line.writes.front().failure;
      std::deque<Write> one;
      one.push_back(line.writes.front());
      if (const Status wrote = transaction(one); !wrote) {
        database_->rollback();
        if (wrote.error().reason != Reason::kInternal) return wrote;
        const std::lock_guard lock(mutex_);
        if (failure) failures_lost(1, wrote.error().message);
        lost(1, wrote.error().message);
      }
      line.writes.pop_front();
    }
    return {};
  }

  // Opens, or makes, the file of which the disk did not let us have more than a copy at the start.
  Status make_file() {
    if (without_file_.empty()) return {};
    auto opened = Database::open(options_.path, clock_.wall_now(), Database::IfFull::kFail);
    if (!opened) return fail(std::move(opened).error());
    tell_of_damage(*opened);
    const std::lock_guard lock(mutex_);  // interrupt() comes from another thread
    database_ = std::move(opened->database);
    without_file_.clear();
    return {};
  }

  Status transaction(const std::deque<Write>& writes) {
    if (auto made = make_file(); !made) return made;
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
  static constexpr const char* kTooMuch = "more is to be written than the disk takes";

  // The thread's own; the first one changes with the mutex, too.
  std::unique_ptr<Database> database_;
  std::string without_file_;  // why `database_` is one in memory; empty: it is not
  std::size_t since_prune_ = 0;
  Line failures_;
  Line others_;

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
  auto last = opened->database->last_sequence();
  if (!last) {
    // Damage behind the pages that opening reads. The file counts as not closed well now, so that
    // all of it is checked.
    opened->database.reset();
    opened = Database::open(options.path, clock.wall_now());
    if (!opened) return fail(std::move(opened).error());
    last = opened->database->last_sequence();
  }
  if (!last) return fail(last.error());
  auto worker = std::make_unique<Worker>(std::move(options), clock, *std::move(opened));
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

void RealStore::proven_loads(std::function<void(Result<std::vector<ProvenLoad>>)> done) {
  worker_->read(
      reader<std::vector<ProvenLoad>>(worker_->clock(), std::move(done),
                                      [](Database& database) { return database.proven_loads(); }));
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

void RealStore::put_measured(MeasuredRecord record) {
  worker_->write({[record = std::move(record)](Database& database) {
    return database.put_measured(record, kMeasuredKept);
  }});
}

void RealStore::measured(std::function<void(Result<MeasuredRecords>)> done) {
  worker_->read(reader<MeasuredRecords>(worker_->clock(), std::move(done),
                                        [](Database& database) { return database.measured(); }));
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

void RealStore::events(EventFilter filter, std::size_t limit,
                       std::function<void(Result<EventPage>)> done) {
  worker_->read(reader<EventPage>(worker_->clock(), std::move(done),
                                  [filter = std::move(filter), limit](Database& database) {
                                    return database.events(filter, limit);
                                  }));
}

}  // namespace berth::store
