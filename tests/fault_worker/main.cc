// fault_worker: a worker that misbehaves on order (L28); fault_script.h says which orders there
// are.
//
//   fault_worker ARGUMENTS OF BERTH-WORKER     takes its script from the model: MODEL.fault, or a
//                                              text in the model's file
//   fault_worker command [--port N | --socket PATH] [--script FILE] [--order TEXT]…
//                [--api-key KEY] [--parent-stdin]
//                                              an HTTP server, as a command worker is one
//
// berthd launches it in place of berth-worker where BERTH_WORKER names it.

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "tests/fault_worker/fault_actor.h"
#include "tests/fault_worker/fault_deeds.h"
#include "tests/fault_worker/fault_script.h"
#include "tests/fault_worker/http_side.h"
#include "tests/fault_worker/worker_side.h"
#include "worker/service/options.h"

namespace berth::fault {
namespace {

constexpr int kUsage = 2;

int complain(const std::string& message) {
  write_all(STDERR_FILENO, "fault_worker: " + message + "\n");
  return kUsage;
}

int block_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  return ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

// Whether the other end of stdin is gone.
bool stdin_ended() {
  std::array<char, 256> bytes{};
  const auto size = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  return size == 0 || (size < 0 && errno != EINTR && errno != EAGAIN);
}

// Never returns: the process ends by _exit, for other threads may be anywhere.
[[noreturn]] void live(Actor& actor, Side& side, bool parent_stdin, int signals) {
  std::thread([&] { actor.live(side); }).detach();
  bool ending = false;
  while (true) {
    std::array<pollfd, 2> fds = {
        {{parent_stdin ? STDIN_FILENO : -1, POLLIN, 0}, {signals, POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0) continue;
    if (fds[0].revents != 0 && stdin_ended()) {
      if (!actor.ignores_stdin()) {
        side.end();
        ::_exit(0);
      }
      parent_stdin = false;
    }
    if (fds[1].revents == 0) continue;
    signalfd_siginfo info{};
    if (::read(signals, &info, sizeof info) <= 0 || actor.ignores_term() || ending) continue;
    ending = true;
    std::thread([&] {
      actor.term(side);
      side.end();
      ::_exit(0);
    }).detach();
  }
}

int worker_main(std::span<const char* const> arguments) {
  auto options = worker::parse_options(arguments);
  if (!options) return complain(options.error().message);
  if (options->action == worker::Options::Action::kVersion) {
    write_all(STDOUT_FILENO, "berth-worker 0, fault-worker\n");
    return 0;
  }
  if (options->action == worker::Options::Action::kDevices) {
    write_all(STDOUT_FILENO, "[]\n");
    return 0;
  }
  if (options->action == worker::Options::Action::kArchitecture) {
    write_all(STDOUT_FILENO, "architecture " + options->architecture + ": known\n");
    return 0;
  }
  if (options->action == worker::Options::Action::kHelp) {
    write_all(STDOUT_FILENO, std::string(worker::help_text()));
    return 0;
  }
  auto script = parse_script(find_script(options->engine.model_path).value_or(""));
  if (!script) return complain(script.error().message);
  const int signals = block_signals();
  Actor actor(std::move(*script), options->engine.model_path);
  const bool parent_stdin = options->parent_stdin;
  WorkerSide side(std::move(*options), actor);
  live(actor, side, parent_stdin, signals);
}

int command_main(std::span<const char* const> arguments) {
  HttpSide::Setup setup;
  std::string script_text;
  std::string script_file;
  bool parent_stdin = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    if (name == "--parent-stdin") {
      parent_stdin = true;
      continue;
    }
    if (i + 1 >= arguments.size()) return complain(std::string(name) + " needs a value.");
    const std::string value = arguments[++i];
    if (name == "--port") {
      const auto [end, error] =
          std::from_chars(value.data(), value.data() + value.size(), setup.port);
      if (error != std::errc{} || end != value.data() + value.size()) {
        return complain("--port must be a number.");
      }
    } else if (name == "--socket") {
      setup.socket = value;
    } else if (name == "--api-key") {
      setup.api_key = value;
    } else if (name == "--order") {
      script_text += value + "\n";
    } else if (name == "--script") {
      script_file = value;
      std::ifstream file(value);
      if (!file) return complain(value + " cannot be read.");
      script_text += std::string(std::istreambuf_iterator<char>(file), {}) + "\n";
    } else {
      return complain("there is no option " + std::string(name) + ".");
    }
  }
  auto script = parse_script(script_text);
  if (!script) return complain(script.error().message);
  const int signals = block_signals();
  Actor actor(std::move(*script), script_file.empty() ? "/proc/self/exe" : script_file);
  HttpSide side(std::move(setup), actor);
  live(actor, side, parent_stdin, signals);
}

}  // namespace
}  // namespace berth::fault

int main(int argc, char** argv) {
  const std::span<const char* const> arguments(argv, static_cast<std::size_t>(argc));
  if (arguments.size() > 1 && std::string_view(arguments[1]) == "command") {
    return berth::fault::command_main(arguments.subspan(2));
  }
  // As a machine without devices.
  if (arguments.size() > 1 && std::string_view(arguments[1]) == "--devices") {
    std::puts(R"({"devices":[]})");
    return 0;
  }
  return berth::fault::worker_main(arguments.subspan(1));
}
