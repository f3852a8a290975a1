// berth-template: renders chat templates for its worker, shut in. Wiring only.

#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "worker/template/helper_limits.h"
#include "worker/template/helper_loop.h"
#include "worker/template/render_file.h"

namespace {

constexpr std::string_view kHelp =
    R"(berth-template renders chat templates for berth-worker, which starts it.

  --serve PARENT              answers the worker with this process id on standard input
  --render TEMPLATE INPUT     prints the prompt that a template makes of a conversation:
                              a JSON object with messages, and where wanted tools,
                              chat_template_kwargs, add_generation_prompt, bos_token, eos_token,
                              now and control_texts; with the limits of --serve
  --adapt TEMPLATE INPUT      prints what the template is given, as JSON
  --version, --help
)";

void print(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto size = ::write(fd, text.data(), text.size());
    if (size <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(size));
  }
}

int render(std::span<char*> arguments, bool adapt) {
  berth::worker::limit_helper();
  const auto text = berth::worker::render_file(arguments[2], arguments[3], adapt);
  if (text) {
    print(STDOUT_FILENO, *text);
    return 0;
  }
  print(STDERR_FILENO, "berth-template: " + text.error().message + "\n");
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  namespace worker = berth::worker;
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  const std::string_view action = argc > 1 ? arguments[1] : "";
  if (action == "--serve" && argc == 3) {
    const std::string_view text(arguments[2]);
    pid_t parent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parent);
    if (error == std::errc() && end == text.data() + text.size()) {
      worker::confine_helper(parent);
      ::_exit(worker::serve_calls(STDIN_FILENO));
    }
  }
  if (action == "--render" && argc == 4) return render(arguments, false);
  if (action == "--adapt" && argc == 4) return render(arguments, true);
  if (action == "--version") {
    print(STDOUT_FILENO, "berth-template " BERTH_VERSION "\n");
    return 0;
  }
  print(action == "--help" ? STDOUT_FILENO : STDERR_FILENO, kHelp);
  return action == "--help" ? 0 : worker::HelperExit::kUsage;
}
