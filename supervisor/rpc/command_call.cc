#include "supervisor/rpc/command_call.h"

#include <boost/json/serialize.hpp>
#include <boost/json/string_view.hpp>
#include <optional>
#include <utility>

namespace berth::rpc {
namespace {

// One request, kept alive by itself until it ends. Core strand only.
class Running : public CommandStreamSink, public std::enable_shared_from_this<Running> {
 public:
  Running(std::shared_ptr<CommandSession> session, SteadyTime deadline,
          std::unique_ptr<CommandReader> reader)
      : session_(std::move(session)), deadline_(deadline), reader_(std::move(reader)) {}

  void begin() {
    self_ = shared_from_this();
    const boost::json::string_view model(session_->model.data(), session_->model.size());
    stream_ = session_->peer->post(reader_->request(boost::json::serialize(model)), *this);
    timer_ = session_->clock.sleep_until(deadline_, [this] {
      end(fail(Reason::kDeadline, "The request's deadline passed before its answer was complete."));
    });
  }

  void cancel() { end(fail(Reason::kInternal, "The request was cancelled.")); }

  void resume() {
    if (over()) return;
    if (go_on(reader_->resume()) && !over()) stream_->resume();
  }

  void on_head(CommandHead head) override {
    if (const Status taken = reader_->on_head(std::move(head)); !taken) end(taken);
  }
  bool on_piece(std::string piece) override {
    const std::shared_ptr<Running> keep = shared_from_this();
    return go_on(reader_->on_piece(std::move(piece)));
  }
  void on_end(Status status) override {
    stream_.reset();
    if (!status && status.error().reason == Reason::kInternal) {
      status =
          fail(Reason::kInternal, "The model's program answered in no HTTP that can be read (" +
                                      status.error().message + ").");
    }
    ended_ = std::move(status);
    // One that has no room yet is told after what came before.
    if (room_) end(*std::move(ended_));
  }

 private:
  [[nodiscard]] bool over() const { return reader_ == nullptr; }

  // Whether more may come.
  bool go_on(const Result<bool>& room) {
    if (over()) return false;
    if (!room) {
      end(fail(room.error()));
      return false;
    }
    room_ = *room;
    if (!room_) return false;
    if (reader_->complete()) {
      end({});
      return false;
    }
    if (ended_) {
      end(*std::move(ended_));
      return false;
    }
    return true;
  }

  void end(Status status) {
    if (over()) return;
    stream_.reset();
    timer_.reset();
    // A callback has to be copyable.
    const std::shared_ptr<CommandReader> reader = std::move(reader_);
    const std::shared_ptr<Running> keep = std::move(self_);
    if (!session_->run_blocking || !reader->ends_slowly()) return reader->on_end(std::move(status));
    session_->run_blocking([reader, status = std::move(status)] { reader->on_end(status); });
  }

  const std::shared_ptr<CommandSession> session_;
  const SteadyTime deadline_;
  std::unique_ptr<CommandReader> reader_;  // null: it is over
  bool room_ = true;
  std::optional<Status> ended_;  // the connection; told when there is room
  Timer timer_;
  std::unique_ptr<CommandStream> stream_;
  std::shared_ptr<Running> self_;
};

class Call : public WorkerCall {
 public:
  Call(Clock& clock, std::shared_ptr<Running> running)
      : clock_(clock), running_(std::move(running)) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() override { Call::cancel(); }

  void cancel() override {
    clock_.post([running = running_] { running->cancel(); });
  }
  void resume() override {
    clock_.post([running = running_] { running->resume(); });
  }

 private:
  Clock& clock_;
  const std::shared_ptr<Running> running_;
};

}  // namespace

std::unique_ptr<WorkerCall> start_command_call(std::shared_ptr<CommandSession> session,
                                               SteadyTime deadline,
                                               std::unique_ptr<CommandReader> reader) {
  Clock& clock = session->clock;
  auto running = std::make_shared<Running>(std::move(session), deadline, std::move(reader));
  clock.post([running] { running->begin(); });
  return std::make_unique<Call>(clock, std::move(running));
}

}  // namespace berth::rpc
