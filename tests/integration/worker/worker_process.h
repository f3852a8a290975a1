#pragma once

#include <grpcpp/grpcpp.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/v1/worker.grpc.pb.h"
#include "common/fd.h"

namespace berth::worker {

// Never waited for unless something is broken.
constexpr auto kPatience = std::chrono::seconds(120);

// The program that this test's workers run: berth_worker_test()'s WORKER.
const char* worker_program();

// How a process ended.
struct Exit {
  std::optional<int> code;
  std::optional<int> signal;
};

// What one generation gave.
struct Outcome {
  std::string text;
  std::vector<int> ids;
  int prefills = 0;
  std::optional<v1::Done> done;
  std::optional<v1::ErrorDetail> error;    // the last event
  std::optional<v1::ErrorDetail> trailer;  // of the trailer `berth-error-bin`
  grpc::Status status;
};

// A berth-worker of its own, with a private directory, and a client of its socket. Test thread. The
// worker dies with this object.
class WorkerProcess {
 public:
  struct Setup {
    std::string model;
    std::vector<std::string> arguments = {};  // besides model, socket, notify-fd and parent-stdin
    std::string socket = {};                  // default: in the own directory
    std::string log = {};                     // path for fds 1 and 2; default: in the own directory
    // A program with arguments that starts the worker, e.g. prlimit.
    std::vector<std::string> wrapper = {};
  };

  explicit WorkerProcess(Setup setup);
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  ~WorkerProcess();

  // Waits until it says that it listens; false: it ended before.
  bool wait_listening();
  // Opens the control stream (once) and reads to Ready, LoadFailed or the stream's end.
  std::optional<v1::ControlEvent> wait_loaded();
  // The next event of the control stream; nothing: its end.
  std::optional<v1::ControlEvent> next_event();
  void send(const v1::ControlRequest& request);
  grpc::Status finish_control();
  Exit wait_exit();
  void close_stdin() { stdin_.reset(); }
  void signal(int number) const;
  [[nodiscard]] std::string log() const;

  // Generates; `on_event` may cancel through the context.
  Outcome generate(const v1::GenerateRequest& request,
                   const std::function<void(const v1::GenerateEvent&, grpc::ClientContext&)>&
                       on_event = nullptr);

  v1::Worker::Stub& stub() { return *stub_; }
  [[nodiscard]] const std::string& socket() const { return setup_.socket; }
  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  void open_control();

  Setup setup_;
  std::string directory_;
  pid_t pid_ = -1;
  UniqueFd pidfd_;
  UniqueFd stdin_;
  UniqueFd notify_;
  std::unique_ptr<v1::Worker::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> control_context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ControlRequest, v1::ControlEvent>> control_;
};

std::string tinychat();

// A temperature of 0 and a text.
v1::GenerateRequest greedy_prompt(const std::string& text);
// Ditto with one message of the user, or with messages as JSON.
v1::GenerateRequest greedy_chat(const std::string& text);
v1::GenerateRequest greedy_messages(const std::string& messages_json);

}  // namespace berth::worker
