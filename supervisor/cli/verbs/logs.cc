#include <string>

#include "common/text.h"
#include "supervisor/cli/verbs/verbs.h"

namespace berth::cli {
namespace {

// A line that does not end is shown in parts of this size.
constexpr std::size_t kMostLineBytes = std::size_t{256} << 10U;

// Shows a log as it comes in chunks that may end anywhere.
class LogView {
 public:
  explicit LogView(Context& context) : context_(context) {}

  bool on_chunk(const v1::LogChunk& chunk) {
    if (!context_.json() && !context_.environment().out.terminal()) {
      context_.print(chunk.data());  // bytes as they are
      return !context_.environment().out.failed();
    }
    rest_ += chunk.data();
    if (context_.json()) {
      for (std::size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n')) {
        emit(end + 1);
      }
    } else {
      // Whole characters at once, so that a person sees a line that is still being written.
      emit(utf8_complete_prefix(rest_));
    }
    if (rest_.size() > kMostLineBytes) emit(utf8_complete_prefix(rest_));
    return !context_.environment().out.failed();
  }

  void finish() { emit(rest_.size()); }

 private:
  void emit(std::size_t bytes) {
    if (bytes == 0) return;
    if (context_.json()) {
      v1::LogChunk line;
      std::size_t end = bytes;
      if (rest_[end - 1] == '\n') --end;
      line.set_data(rest_.substr(0, end));
      context_.print_json(line, JsonWriter::Layout::kLine);
    } else {
      context_.print(rest_.substr(0, bytes));
    }
    rest_.erase(0, bytes);
  }

  Context& context_;
  std::string rest_;
};

}  // namespace

ExitCode run_logs(Context& context, const LogsOptions& options) {
  auto client = context.client();
  if (!client) return context.fail(client.error());
  v1::ReadLogRequest request;
  request.set_model(options.model);
  request.set_follow(options.follow);
  if (options.lines) request.set_tail_lines(*options.lines);
  LogView view(context);
  const auto reply = (*client)->read_log(
      request, [&](const v1::LogChunk& chunk) { return view.on_chunk(chunk); }, {});
  view.finish();
  if (reply) return ExitCode::kOk;
  if (reply.error().kind == CallError::Kind::kStopped) {
    return context.refuse("cannot write the log: " +
                          context.environment().out.failed().value_or("stopped"));
  }
  return context.fail(reply.error(), options.model);
}

}  // namespace berth::cli
