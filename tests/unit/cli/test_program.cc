#include "tests/unit/cli/test_program.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>

namespace berth::cli::test {

void StringOutput::write(std::string_view more) {
  if (failure) return;
  text += more;
  if (on_write) on_write();
}

Caught FakeInterrupts::during(const std::function<void(const std::stop_token&)>& work) {
  source_ = std::stop_source();
  caught_ = Caught::kNone;
  work(source_.get_token());
  return caught_;
}

void FakeInterrupts::interrupt(Caught kind) {
  caught_ = kind;
  source_.request_stop();
}

TestProgram::TestProgram(Terminal terminal)
    : out(terminal.out),
      err(terminal.err),
      variables{{"TERM", "xterm"}, {"NO_COLOR", "1"}, {"BERTH_CONFIG", "/nonexistent/berth.toml"}},
      now(std::chrono::milliseconds(1'800'000'000'000)),
      environment{[this](const char* name) -> std::optional<std::string> {
                    const auto found = variables.find(name);
                    if (found == variables.end()) return std::nullopt;
                    return found->second;
                  },
                  out,
                  err,
                  -1,
                  false,
                  [terminal] { return terminal.columns; },
                  [this] { return now; },
                  system_now,
                  interrupts,
                  "/nonexistent/bin/berth"} {
  set_input("");
}

void TestProgram::set_input(const std::string& text) {
  input_.reset(::memfd_create("input", MFD_CLOEXEC));
  FdOutput(input_.get()).write(text);
  ::lseek(input_.get(), 0, SEEK_SET);
  environment.input = input_.get();
}

ExitCode TestProgram::run(const std::vector<std::string>& arguments) {
  out.text.clear();
  err.text.clear();
  return cli::run(arguments, environment);
}

}  // namespace berth::cli::test
