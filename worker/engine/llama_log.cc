#include "worker/engine/llama_log.h"

#include <unistd.h>

#include <cstddef>
#include <utility>

namespace berth::worker {
namespace {

constexpr std::size_t kMaxLine = 8192;

}  // namespace

LlamaLog& LlamaLog::instance() {
  static auto* log = new LlamaLog;  // libllama may log until the very end
  return *log;
}

void LlamaLog::install() {
  llama_log_set(&LlamaLog::on_text, this);
}

LoadLog* LlamaLog::observe(LoadLog* log) {
  const std::lock_guard lock(mutex_);
  return std::exchange(observer_, log);
}

void LlamaLog::on_text(ggml_log_level level, const char* text, void* self) {
  static_cast<LlamaLog*>(self)->add(level, text);
}

void LlamaLog::add(ggml_log_level level, std::string_view text) {
  if (level == GGML_LOG_LEVEL_DEBUG) return;
  const std::lock_guard lock(mutex_);
  if (level != GGML_LOG_LEVEL_CONT) line_level_ = level;
  while (!text.empty()) {
    const auto newline = text.find('\n');
    const auto part = text.substr(0, newline);
    line_.append(part.substr(0, kMaxLine - line_.size()));
    if (newline == std::string_view::npos) return;
    text.remove_prefix(newline + 1);
    if (observer_ != nullptr) {
      observer_->add_line(line_, line_level_ == GGML_LOG_LEVEL_ERROR);
    }
    line_.push_back('\n');
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line_.data(), line_.size());
    line_.clear();
  }
}

}  // namespace berth::worker
