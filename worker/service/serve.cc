#include "worker/service/serve.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "worker/service/listen_socket.h"
#include "worker/template/template_guard.h"

namespace berth::worker {
namespace {

// An empty text where the file cannot be used.
std::string read_template(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file || text.size() > TemplateBounds::kBytes) text.clear();
  return text;
}

}  // namespace

int complain(std::string_view message, int status) {
  const auto line = "berth-worker: " + std::string(message) + "\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
  return status;
}

int serve(Options options, EngineLoader loader) {
  if (options.notify_fd >= 0 && ::fcntl(options.notify_fd, F_SETFD, FD_CLOEXEC) != 0) {
    return complain("--notify-fd " + std::to_string(options.notify_fd) + " is not open.",
                    kExitUsage);
  }
  std::string template_override;
  if (!options.chat_template_file.empty()) {
    template_override = read_template(options.chat_template_file);
    if (template_override.empty()) {
      return complain("--chat-template " + options.chat_template_file +
                          " cannot be read, is empty or longer than 256 KiB.",
                      kExitUsage);
    }
  }
  Host::block_signals();
  auto socket = ListenSocket::open(options.socket);
  if (!socket) {
    const bool usage = socket.error().reason == Reason::kInvalidArgument;
    return complain(socket.error().message, usage ? kExitUsage : kExitFailed);
  }
  Host host(std::move(options), std::move(*socket), std::move(template_override), loader);
  const int status = host.run();
  ::_exit(status);  // other threads may be anywhere in gRPC or libllama
}

}  // namespace berth::worker
