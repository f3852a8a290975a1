#include "worker/service/serve.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "common/fd.h"
#include "worker/sandbox/sandbox.h"
#include "worker/service/listen_socket.h"
#include "worker/template/template_choice.h"
#include "worker/template/template_guard.h"
#include "worker/template/template_renderer.h"

namespace berth::worker {
namespace {

// An empty text where the file cannot be used. Whatever the path names: it neither waits nor reads
// more than a template may have.
std::string read_template(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  std::string text(TemplateBounds::kBytes + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const auto count = ::read(file.get(), text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return {};
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  if (size > TemplateBounds::kBytes) return {};
  text.resize(size);
  return text;
}

std::string unknown_template(const std::string& name, BuiltinTemplates builtin) {
  auto names = builtin.names != nullptr ? builtin.names() : std::vector<std::string>();
  std::sort(names.begin(), names.end());
  std::string text = "--chat-template " + name +
                     " is no regular file that can be read, and this libllama has no chat "
                     "template of this name. It has";
  for (const auto& known : names) text += (&known == &names.front() ? ": " : ", ") + known;
  return text + (names.empty() ? " none." : ".");
}

// A name without a directory is that of a built-in template, unless there is such a file. What is
// wrong with a file may be right the next time, so that this is no permanent failure.
tl::expected<TemplateChoice, LoadFailure> choose_template(const Options& options,
                                                          BuiltinTemplates builtin) {
  TemplateChoice choice;
  choice.program = options.template_program;
  if (choice.program.empty()) choice.program = template_program_beside_self();
  choice.builtin = builtin;
  const auto& wanted = options.chat_template;
  if (wanted.empty()) return choice;
  choice.source = read_template(wanted);
  if (!choice.source.empty()) return choice;
  if (wanted.find('/') != std::string::npos) {
    return tl::unexpected(LoadFailure{
        "unclassified", "--chat-template " + wanted +
                            " cannot be read, is no regular file, is empty or longer than 256 "
                            "KiB."});
  }
  choice.named = builtin.has != nullptr && builtin.has(wanted);
  if (!choice.named) {
    return tl::unexpected(LoadFailure{"permanent", unknown_template(wanted, builtin)});
  }
  choice.source = wanted;
  return choice;
}

}  // namespace

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // their runtimes read and start what a worker may not
#else
constexpr bool kSanitized = false;
#endif

std::string directory_of(const std::string& path) {
  const auto slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// From here on all that is opened may come from a model's file.
void shut_in(const Options& options, const TemplateChoice& choice) {
  if (!options.sandbox || kSanitized) return;
  SandboxPlaces places;
  places.models.push_back(options.engine.model_path);
  if (!options.engine.draft_path.empty()) places.models.push_back(options.engine.draft_path);
  for (const auto& [path, scale] : options.engine.adapters) places.models.push_back(path);
  places.socket_directory = directory_of(options.socket);
  places.template_program = choice.program;
  places.devices = options.engine.devices;
  const auto report = enter_sandbox(places, ::getppid());
  if (!report.complete()) {
    complain("parts of the sandbox are not there: " + report.missing() + ".", 0);
  }
}

}  // namespace

namespace {

void write_line(std::string_view begin, std::string_view message) {
  const auto line = std::string(begin) + std::string(message) + "\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

int complain_of_socket(const Error& error) {
  if (error.reason == Reason::kNoRoom) {
    write_line(kShortage, error.message);
    return kExitFailed;
  }
  return complain(error.message,
                  error.reason == Reason::kInvalidArgument ? kExitUsage : kExitFailed);
}

}  // namespace

int complain(std::string_view message, int status) {
  write_line(status == 0 ? "berth-worker: " : kRefusal, message);
  return status;
}

int serve(Options options, EngineLoader loader, BuiltinTemplates builtin) {
  if (options.notify_fd >= 0 && ::fcntl(options.notify_fd, F_SETFD, FD_CLOEXEC) != 0) {
    return complain("--notify-fd " + std::to_string(options.notify_fd) + " is not open.",
                    kExitUsage);
  }
  auto choice = choose_template(options, builtin);
  Host::block_signals();
  auto socket = ListenSocket::open(options.socket);
  if (!socket) return complain_of_socket(socket.error());
  if (!choice) complain(choice.error().reason, 0);
  shut_in(options, choice.value_or(TemplateChoice{}));
  Host host(std::move(options), std::move(*socket), std::move(choice), loader);
  const int status = host.run();
  ::_exit(status);  // other threads may be anywhere in gRPC or libllama
}

}  // namespace berth::worker
