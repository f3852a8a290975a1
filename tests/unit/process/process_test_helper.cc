// A supervisor in small for T64: starts a process that ignores SIGTERM and would live for an hour,
// says its pid, and waits to be killed. With arguments (SHIM SCRIPT OUTPUT) it starts that script
// below berth-shim.
#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <iostream>
#include <string_view>

#include "supervisor/process/process_launcher.h"

namespace {

struct Ignore : berth::process::ChildObserver {
  void on_notify(std::string_view /*line*/) override {}
  void on_exit(berth::core::ExitStatus /*status*/) override {}
};

}  // namespace

int main(int argc, char** argv) {
  boost::asio::io_context io;
  berth::process::RealLauncher launcher(io);
  Ignore observer;
  berth::process::LaunchSpec spec;
  spec.program = "/bin/sh";
  spec.argv = {"sh", "-c", "trap '' TERM HUP; while :; do sleep 1; done"};
  spec.environment = {"PATH=/usr/bin:/bin"};
  constexpr int kWithShim = 4;
  if (argc == kWithShim) {
    spec.shim = argv[1];
    spec.argv.back() = argv[2];
    spec.output.reset(::open(argv[3], O_WRONLY | O_APPEND | O_CLOEXEC));
  }
  const auto child = launcher.launch(std::move(spec), observer);
  if (!child) {
    std::cerr << child.error().message << "\n";
    return 1;
  }
  std::cout << (*child)->pid() << std::endl;
  io.run();
  return 0;
}
