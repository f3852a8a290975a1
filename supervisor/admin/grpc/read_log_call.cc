#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "supervisor/admin/grpc/calls.h"
#include "supervisor/process/log_file.h"
#include "supervisor/process/log_follower.h"
#include "supervisor/rpc/error_detail.h"
#include "supervisor/rpc/event_writer.h"

namespace berth::admin {
namespace {

constexpr std::uint32_t kDefaultLines = 200;
constexpr auto kPollWithoutInotify = std::chrono::milliseconds(500);

// Reads on the pool while the client has room, waits on the core strand while there is nothing to
// read. Exactly one of the two goes on at a time, so the follower needs no lock.
class ReadLogCall : public rpc::EventWriter<v1::LogChunk> {
 public:
  ReadLogCall(grpc::CallbackServerContext& context, ServerState& state, CallFrom from,
              v1::ReadLogRequest request)
      : EventWriter(context), state_(state), from_(std::move(from)), request_(std::move(request)) {}

  void run() {
    state_.services.clock.post([self = self()] {
      const Result<std::string> model = self->state_.name_of(self->request_.model());
      if (!model) return self->end_badly(model.error());
      self->path_ = process::log_path(self->state_.config->server.log_dir, *model);
      self->state_.run_blocking([self] { self->open(); });
    });
  }

 private:
  std::shared_ptr<ReadLogCall> self() {
    return std::static_pointer_cast<ReadLogCall>(shared_from_this());
  }

  // On the pool.
  void open() {
    std::optional<std::uint32_t> lines = kDefaultLines;
    if (request_.has_tail_lines()) lines = request_.tail_lines();
    if (lines == 0) lines.reset();
    Result<process::LogFollower> opened =
        process::LogFollower::open(path_, lines, request_.follow());
    if (!opened) return end_badly(opened.error());
    follower_.emplace(*std::move(opened));
    pump();
  }

  // On the pool.
  void pump() {
    while (!gone_) {
      Result<std::string> chunk = follower_->read();
      if (!chunk) return end_badly(chunk.error());
      if (chunk->empty()) {
        if (!request_.follow()) return end(grpc::Status::OK);
        return wait();
      }
      v1::LogChunk message;
      message.set_data(*std::move(chunk));
      if (!push(std::move(message))) return;  // on_room() goes on
    }
  }

  void wait() {
    state_.services.clock.post([self = self()] {
      if (self->gone_) return;
      const int fd = self->follower_->wait_fd();
      const auto again = [self] {
        self->waiting_.reset();
        self->state_.run_blocking([self] { self->pump(); });
      };
      self->waiting_ = fd >= 0 ? self->state_.on_readable(fd, again)
                               : self->state_.services.clock.sleep_for(kPollWithoutInotify, again);
    });
  }

  void on_room() override {
    state_.run_blocking([self = self()] { self->pump(); });
  }
  void on_gone() override {
    gone_ = true;
    state_.services.clock.post([self = self()] { self->waiting_.reset(); });
  }

  void end_badly(const Error& error) { fail(from_.detail(error), rpc::to_status(error)); }

  ServerState& state_;
  const CallFrom from_;
  const v1::ReadLogRequest request_;
  std::string path_;
  std::optional<process::LogFollower> follower_;
  std::atomic<bool> gone_{false};
  Timer waiting_;  // core strand
};

}  // namespace

grpc::ServerWriteReactor<v1::LogChunk>* start_read_log(grpc::CallbackServerContext& context,
                                                       ServerState& state, CallFrom from,
                                                       const v1::ReadLogRequest& request) {
  const auto call = std::make_shared<ReadLogCall>(context, state, std::move(from), request);
  call->begin(call);
  call->run();
  return call.get();
}

}  // namespace berth::admin
