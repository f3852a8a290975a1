#include "tests/integration/worker/worker_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

namespace berth::worker {
namespace {

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Pipe make_pipe() {
  int fds[2] = {-1, -1};
  EXPECT_EQ(::pipe2(fds, O_CLOEXEC), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

int patience_ms() {
  return static_cast<int>(std::chrono::milliseconds(kPatience).count());
}

}  // namespace

WorkerProcess::WorkerProcess(Setup setup) : setup_(std::move(setup)) {
  std::string pattern = "/tmp/berth-XXXXXX";
  directory_ = ::mkdtemp(pattern.data());
  if (setup_.socket.empty()) setup_.socket = directory_ + "/s";
  if (setup_.log.empty()) setup_.log = directory_ + "/log";

  auto input = make_pipe();
  auto notify = make_pipe();
  std::vector<std::string> arguments = {
      worker_program(), "--model",     setup_.model, "--socket",
      setup_.socket,    "--notify-fd", "3",          "--parent-stdin"};
  arguments.insert(arguments.end(), setup_.arguments.begin(), setup_.arguments.end());
  // One thread needs nobody to wait for: a test must not depend on how busy the machine is.
  if (std::find(arguments.begin(), arguments.end(), "--threads") == arguments.end()) {
    arguments.insert(arguments.end(), {"--threads", "1"});
  }
  arguments.insert(arguments.begin(), setup_.wrapper.begin(), setup_.wrapper.end());
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input.read.get(), 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, setup_.log.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                     0600);
  ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
  ::posix_spawn_file_actions_adddup2(&actions, notify.write.get(), 3);
  EXPECT_EQ(::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ), 0);
  ::posix_spawn_file_actions_destroy(&actions);
  pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  stdin_ = std::move(input.write);
  notify_ = std::move(notify.read);

  grpc::ChannelArguments channel;
  channel.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  stub_ = v1::Worker::NewStub(grpc::CreateCustomChannel(
      "unix:" + setup_.socket, grpc::InsecureChannelCredentials(), channel));
}

WorkerProcess::~WorkerProcess() {
  if (control_context_ != nullptr) control_context_->TryCancel();
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  // Leaks are looked for at an orderly end only; what was found is in the log.
  if (pid_ > 0) {
    signal(SIGTERM);
    wait_exit();
  }
  if (setup_.log == directory_ + "/log" && log().find("Sanitizer") != std::string::npos) {
    ADD_FAILURE() << log();
  }
#endif
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  std::filesystem::remove_all(directory_);
}

bool WorkerProcess::wait_listening() {
  pollfd fd{notify_.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&fd, 1, patience_ms()), 1);
  char bytes[32] = {};
  const auto size = ::read(notify_.get(), bytes, sizeof bytes);
  return std::string_view(bytes, size > 0 ? static_cast<std::size_t>(size) : 0) == "listening\n";
}

void WorkerProcess::open_control() {
  if (control_ != nullptr) return;
  control_context_ = std::make_unique<grpc::ClientContext>();
  control_context_->set_deadline(std::chrono::system_clock::now() + kPatience);
  control_ = stub_->Control(control_context_.get());
  v1::ControlRequest request;
  request.mutable_hello()->set_protocol(1);
  control_->Write(request);
}

std::optional<v1::ControlEvent> WorkerProcess::next_event() {
  open_control();
  v1::ControlEvent event;
  if (!control_->Read(&event)) return std::nullopt;
  return event;
}

std::optional<v1::ControlEvent> WorkerProcess::wait_loaded() {
  if (!wait_listening()) return std::nullopt;
  while (auto event = next_event()) {
    if (event->has_ready() || event->has_load_failed()) return event;
  }
  return std::nullopt;
}

void WorkerProcess::send(const v1::ControlRequest& request) {
  open_control();
  control_->Write(request);
}

grpc::Status WorkerProcess::finish_control() {
  return control_->Finish();
}

Exit WorkerProcess::wait_exit() {
  pollfd fd{pidfd_.get(), POLLIN, 0};
  if (::poll(&fd, 1, patience_ms()) != 1) {
    ADD_FAILURE() << "the worker does not end:\n" << log();
    return {};
  }
  int status = 0;
  ::waitpid(std::exchange(pid_, -1), &status, 0);
  Exit exit;
  if (WIFEXITED(status)) exit.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) exit.signal = WTERMSIG(status);
  return exit;
}

void WorkerProcess::signal(int number) const {
  ::kill(pid_, number);
}

std::string WorkerProcess::log() const {
  std::ifstream file(setup_.log);
  return {std::istreambuf_iterator<char>(file), {}};
}

Outcome WorkerProcess::generate(
    const v1::GenerateRequest& request,
    const std::function<void(const v1::GenerateEvent&, grpc::ClientContext&)>& on_event) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  const auto stream = stub_->Generate(&context, request);
  Outcome outcome;
  v1::GenerateEvent event;
  while (stream->Read(&event)) {
    EXPECT_FALSE(outcome.done || outcome.error) << "an event after the last";
    if (event.has_prefill()) ++outcome.prefills;
    if (event.has_token()) {
      outcome.text += event.token().text();
      outcome.ids.insert(outcome.ids.end(), event.token().ids().begin(), event.token().ids().end());
    }
    if (event.has_done()) outcome.done = event.done();
    if (event.has_error()) outcome.error = event.error();
    if (on_event) on_event(event, context);
  }
  outcome.status = stream->Finish();
  const auto& trailers = context.GetServerTrailingMetadata();
  if (const auto trailer = trailers.find("berth-error-bin"); trailer != trailers.end()) {
    v1::ErrorDetail detail;
    EXPECT_TRUE(
        detail.ParseFromArray(trailer->second.data(), static_cast<int>(trailer->second.size())));
    outcome.trailer = detail;
  }
  return outcome;
}

std::string tinychat() {
  return BERTH_MODELS "/tinychat.gguf";
}

v1::GenerateRequest greedy_prompt(const std::string& text) {
  v1::GenerateRequest request;
  request.set_prompt(text);
  request.mutable_sampling()->set_temperature(0);
  return request;
}

v1::GenerateRequest greedy_messages(const std::string& messages_json) {
  v1::GenerateRequest request;
  request.mutable_chat()->set_messages_json(messages_json);
  request.mutable_sampling()->set_temperature(0);
  return request;
}

v1::GenerateRequest greedy_chat(const std::string& text) {
  const auto messages = nlohmann::json::array({{{"role", "user"}, {"content", text}}});
  return greedy_messages(messages.dump());
}

}  // namespace berth::worker
