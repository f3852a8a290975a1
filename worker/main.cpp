// berth-worker: one model, served to berthd. Wiring only.

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "worker/engine/llama_engine.h"
#include "worker/service/host.h"
#include "worker/service/listen_socket.h"
#include "worker/service/options.h"
#include "worker/service/process_limits.h"
#include "worker/template/chat_template.h"

namespace {

using berth::worker::ChatTemplate;
using berth::worker::Host;
using berth::worker::ListenSocket;
using berth::worker::Options;

constexpr int kFailed = 1;
constexpr int kUsage = 2;

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto size = ::write(fd, text.data(), text.size());
    if (size <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(size));
  }
}

int complain(std::string_view message, int status) {
  write_all(STDERR_FILENO, "berth-worker: " + std::string(message) + "\n");
  return status;
}

int serve(Options options) {
  if (options.notify_fd >= 0 && ::fcntl(options.notify_fd, F_SETFD, FD_CLOEXEC) != 0) {
    return complain("--notify-fd " + std::to_string(options.notify_fd) + " is not open.", kUsage);
  }
  std::string template_override;
  if (!options.chat_template_file.empty()) {
    std::ifstream file(options.chat_template_file, std::ios::binary);
    template_override.assign(std::istreambuf_iterator<char>(file), {});
    if (!file || template_override.empty() ||
        template_override.size() > ChatTemplate::kMaxTemplateBytes) {
      return complain("--chat-template " + options.chat_template_file +
                          " cannot be read, is empty or longer than 1 MiB.",
                      kUsage);
    }
  }
  Host::block_signals();
  auto socket = ListenSocket::open(options.socket);
  if (!socket) {
    const bool usage = socket.error().reason == berth::Reason::kInvalidArgument;
    return complain(socket.error().message, usage ? kUsage : kFailed);
  }
  Host host(std::move(options), std::move(*socket), std::move(template_override),
            &berth::worker::load_llama_engine);
  const int status = host.run();
  ::_exit(status);  // other threads may be anywhere in gRPC or libllama
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<const char* const> arguments(argv, static_cast<std::size_t>(argc));
  auto options = berth::worker::parse_options(arguments.subspan(1));
  if (!options) return complain(options.error().message, kUsage);
  if (options->action == Options::Action::kServe) berth::worker::restart_with_short_spin(argv);
  berth::worker::limit_own_process();
  switch (options->action) {
    case Options::Action::kHelp:
      write_all(STDOUT_FILENO, berth::worker::help_text());
      return 0;
    case Options::Action::kVersion:
      write_all(STDOUT_FILENO,
                "berth-worker " BERTH_VERSION ", " + berth::worker::llama_build_id() + "\n");
      return 0;
    case Options::Action::kDevices:
      write_all(STDOUT_FILENO, berth::worker::llama_devices_json());
      return 0;
    case Options::Action::kServe:
      return serve(std::move(*options));
  }
}
