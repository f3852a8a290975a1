#include "common/log.h"

// The place in the source would be a path of the machine that built it.
#define SD_JOURNAL_SUPPRESS_LOCATION

#include <signal.h>
#include <spdlog/async_logger.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/sinks/sink.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "common/line_output.h"
#include "common/log_line.h"

namespace berth {
namespace {

enum class Form : std::uint8_t { kPlain, kColoured, kJson, kJournal };

// Values of journal fields may hold any byte but this one, as printable text has none.
constexpr char kFieldEnd = '\0';

SteadyTime steady_now() {
  std::timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return SteadyTime(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

WallTime wall_now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

// Read once, before there are other threads that might change the environment.
std::string environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? std::string() : std::string(value);
}

Form choose_form(const LogOptions& options) {
  if (options.format == LogFormat::kJson) return Form::kJson;
  struct stat info {};
  if (::fstat(options.fd, &info) == 0 &&
      names_journal_stream(environment("JOURNAL_STREAM"), info.st_dev, info.st_ino)) {
    return Form::kJournal;
  }
  const bool coloured =
      ::isatty(options.fd) == 1 && environment("NO_COLOR").empty() && environment("TERM") != "dumb";
  return coloured ? Form::kColoured : Form::kPlain;
}

std::string payload(const Event& event, Form form) {
  switch (form) {
    case Form::kPlain:
      return log_line(event, false);
    case Form::kColoured:
      return log_line(event, true);
    case Form::kJson:
      return json_line(event);
    case Form::kJournal:
      break;
  }
  std::string joined;
  for (const std::string& field : journal_fields(event)) {
    if (!joined.empty()) joined.push_back(kFieldEnd);
    for (const char c : field) {
      if (c != kFieldEnd) joined.push_back(c);
    }
  }
  return joined;
}

bool send_to_journal(std::string_view joined) {
  std::vector<iovec> fields;
  while (true) {
    const std::size_t end = joined.find(kFieldEnd);
    const std::string_view field = joined.substr(0, end);
    // The call does not write to it.
    fields.push_back(iovec{const_cast<char*>(field.data()), field.size()});
    if (end == std::string_view::npos) break;
    joined.remove_prefix(end + 1);
  }
  return sd_journal_sendv(fields.data(), static_cast<int>(fields.size())) == 0;
}

spdlog::level::level_enum spdlog_level(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

// Where spdlog's thread puts the lines. They come formed: no formatter is used.
class EventLineSink : public spdlog::sinks::sink {
 public:
  EventLineSink(int fd, Form form) : output_(fd), form_(form) {}

  void log(const spdlog::details::log_msg& message) override {
    report_drops();
    if (!put({message.payload.data(), message.payload.size()})) lost_.fetch_add(1);
  }
  void flush() override {}
  void set_pattern(const std::string& /*pattern*/) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter> /*formatter*/) override {}

  LineOutput& output() { return output_; }
  [[nodiscard]] std::uint64_t lost() const { return lost_.load(); }
  // Lines that the queue dropped, as far as is known.
  void set_overruns(std::uint64_t count) { overruns_.store(count); }

 private:
  bool put(std::string_view line) {
    return form_ == Form::kJournal ? send_to_journal(line) : output_.write_line(line);
  }

  void report_drops() {
    const std::uint64_t total = lost_.load() + overruns_.load();
    if (total == reported_) return;
    Event event =
        events::to_event(events::LogDropped{.lines = static_cast<std::int64_t>(total - reported_)});
    event.time = wall_now();
    if (put(payload(event, form_))) reported_ = total;
  }

  LineOutput output_;
  Form form_;
  std::atomic<std::uint64_t> lost_ = 0;
  std::atomic<std::uint64_t> overruns_ = 0;
  std::uint64_t reported_ = 0;
};

// A signal that is meant for the program must not be handled by this thread, and a pipe whose
// reader is gone gives an error instead of ending the program.
void block_all_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

using Pool = spdlog::details::thread_pool;

// Waits until the pool's thread has ended. Where the system does not let go of a write (a file
// system that hangs, a journal that is stuck), the thread is left behind: the program is ending.
void end_pool(std::shared_ptr<Pool> pool, Duration bound) {
  auto done = std::make_shared<std::promise<void>>();
  auto ended = done->get_future();
  std::thread ender;
  try {
    ender = std::thread([held = std::move(pool), done]() mutable {
      held.reset();
      done->set_value();
    });
  } catch (const std::exception&) {
    return;  // the pool has ended with the lambda that held it
  }
  if (ended.wait_for(bound) == std::future_status::ready) {
    ender.join();
  } else {
    ender.detach();
  }
}

}  // namespace

class LogWriter::Core {
 public:
  explicit Core(const LogOptions& options)
      : minimum_(options.minimum),
        form_(choose_form(options)),
        sink_(std::make_shared<EventLineSink>(options.fd, form_)),
        pool_(std::make_shared<Pool>(options.queue_lines, 1, block_all_signals)),
        logger_(std::make_shared<spdlog::async_logger>(
            "berth", sink_, pool_, spdlog::async_overflow_policy::overrun_oldest)) {
    logger_->set_level(spdlog::level::trace);
  }

  void write(const Event& event) {
    if (event.level < minimum_) return;
    const std::string line = timed_payload(event);
    const std::shared_lock lock(mutex_);
    if (!logger_) {
      late_.fetch_add(1);
      return;
    }
    logger_->log(spdlog_level(event.level), spdlog::string_view_t(line.data(), line.size()));
    sink_->set_overruns(pool_->overrun_counter());
  }

  void close(Duration bound) {
    std::shared_ptr<Pool> pool;
    {
      const std::unique_lock lock(mutex_);
      if (!logger_) return;
      overruns_at_end_.store(pool_->overrun_counter());
      pool = std::move(pool_);
      logger_.reset();
    }
    sink_->output().give_up_at(steady_now() + bound);
    end_pool(std::move(pool), bound + std::chrono::seconds(1));
  }

  [[nodiscard]] std::uint64_t dropped() const {
    const std::shared_lock lock(mutex_);
    const std::uint64_t overruns = pool_ ? pool_->overrun_counter() : overruns_at_end_.load();
    return overruns + sink_->lost() + late_.load();
  }

 private:
  [[nodiscard]] std::string timed_payload(const Event& event) const {
    if (event.time != WallTime{}) return payload(event, form_);
    Event timed = event;
    timed.time = wall_now();
    return payload(timed, form_);
  }

  const Level minimum_;
  const Form form_;
  const std::shared_ptr<EventLineSink> sink_;
  mutable std::shared_mutex mutex_;  // logger_ and pool_: changed by close() alone
  std::shared_ptr<Pool> pool_;
  std::shared_ptr<spdlog::async_logger> logger_;
  std::atomic<std::uint64_t> late_ = 0;
  std::atomic<std::uint64_t> overruns_at_end_ = 0;
};

LogWriter::LogWriter(std::unique_ptr<Core> core) : core_(std::move(core)) {}

LogWriter::~LogWriter() {
  close();
}

Result<std::unique_ptr<LogWriter>> LogWriter::start(const LogOptions& options) {
  try {
    return std::unique_ptr<LogWriter>(new LogWriter(std::make_unique<Core>(options)));
  } catch (const std::exception& problem) {
    return fail(Reason::kInternal, std::string("cannot start the log's thread: ") + problem.what());
  }
}

void LogWriter::write(const Event& event) {
  core_->write(event);
}

void LogWriter::close(Duration bound) {
  core_->close(bound);
}

std::uint64_t LogWriter::dropped() const {
  return core_->dropped();
}

}  // namespace berth
