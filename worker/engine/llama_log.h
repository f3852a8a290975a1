#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "llama.h"
#include "worker/engine/load_log.h"

namespace berth::worker {

// Takes libllama's log: assembles whole lines, writes them to stderr (debug lines are dropped) and
// shows them to a LoadLog while there is one. Any thread. Failed writes are ignored: a full disk is
// no reason to stop serving. Lives as long as the process.
class LlamaLog {
 public:
  static LlamaLog& instance();

  // Installs itself in libllama and ggml. Call before any other function of theirs.
  void install();
  // From now on lines go to `log` too; nullptr ends that. Returns the one before.
  LoadLog* observe(LoadLog* log);

 private:
  LlamaLog() = default;
  static void on_text(ggml_log_level level, const char* text, void* self);
  void add(ggml_log_level level, std::string_view text);

  std::mutex mutex_;
  std::string line_;  // what has come of the present line, at most kMaxLine bytes
  ggml_log_level line_level_ = GGML_LOG_LEVEL_INFO;
  LoadLog* observer_ = nullptr;
};

// Lets log lines go to one LoadLog, instead of the one before, as long as it lives.
class LogObservation {
 public:
  explicit LogObservation(LoadLog& log) : before_(LlamaLog::instance().observe(&log)) {}
  LogObservation(const LogObservation&) = delete;
  LogObservation& operator=(const LogObservation&) = delete;
  ~LogObservation() { LlamaLog::instance().observe(before_); }

 private:
  LoadLog* before_;
};

}  // namespace berth::worker
