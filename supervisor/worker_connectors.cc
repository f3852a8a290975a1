#include "supervisor/worker_connectors.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "supervisor/process/http_call.h"
#include "supervisor/process/http_stream.h"
#include "supervisor/process/port.h"
#include "supervisor/rpc/command_client.h"

namespace berth {
namespace {

using Who = rpc::CommandListener::Who;

// Ends the wait for something that works on the pool and cannot be stopped there.
class DropAnswer : public Timer::Impl {
 public:
  explicit DropAnswer(std::shared_ptr<bool> wanted) : wanted_(std::move(wanted)) {}
  DropAnswer(const DropAnswer&) = delete;
  DropAnswer& operator=(const DropAnswer&) = delete;
  ~DropAnswer() override { *wanted_ = false; }

 private:
  std::shared_ptr<bool> wanted_;  // core strand only
};

// A stranger has to be seen so often in a row, as one look sees several moments.
constexpr int kLooksAtAStranger = 3;
constexpr Duration kPauseBetweenLooks = std::chrono::milliseconds(300);

// Looks who answers a connection that was made. Core strand only.
class ConnectionCheck : public Timer::Impl {
 public:
  ConnectionCheck(Clock& clock, rpc::CommandPeer& peer, std::function<void(Status)> done)
      : clock_(clock), peer_(peer), done_(std::move(done)) {
    look();
  }

 private:
  void look() {
    pending_ = peer_.look([this](const rpc::CommandListener& seen) { on_look(seen); });
  }
  void on_look(const rpc::CommandListener& seen) {
    if (seen.who == Who::kOther && ++strangers_ < kLooksAtAStranger) {
      pending_ = clock_.sleep_for(kPauseBetweenLooks, [this] { look(); });
      return;
    }
    const auto done = std::move(done_);  // which may end this
    if (seen.who == Who::kChild) return done({});
    done(fail(Reason::kWorkerDied, seen.who == Who::kNobody
                                       ? "nobody listens at the program's address any more"
                                       : seen.problem));
  }

  Clock& clock_;
  rpc::CommandPeer& peer_;
  std::function<void(Status)> done_;
  int strangers_ = 0;
  Timer pending_;
};

// An answer on its way from a program.
class RealStream : public rpc::CommandStream, private process::HttpStreamSink {
 public:
  RealStream(boost::asio::io_context& io, const CommandRun& run, rpc::CommandPost post,
             process::CheckConnection check, rpc::CommandStreamSink& sink)
      : sink_(sink),
        stream_(process::http_stream(io, run.address,
                                     {std::move(post.path), std::move(post.body), run.key},
                                     std::move(check), *this)) {}
  void resume() override { stream_->resume(); }

 private:
  void on_head(process::HttpStreamHead head) override {
    sink_.on_head({head.status, std::move(head.content_type), std::move(head.content_encoding),
                   std::move(head.retry_after)});
  }
  bool on_piece(std::string piece) override { return sink_.on_piece(std::move(piece)); }
  void on_end(Status status) override { sink_.on_end(std::move(status)); }

  rpc::CommandStreamSink& sink_;
  const std::unique_ptr<process::HttpStream> stream_;
};

// The program of one run.
class RealPeer : public rpc::CommandPeer {
 public:
  RealPeer(const WorkerConnectors::Parts& parts, CommandRun run, std::string instance)
      : parts_(parts), run_(std::move(run)), instance_(std::move(instance)) {}

  Timer look(std::function<void(rpc::CommandListener)> done) override {
    auto wanted = std::make_shared<bool>(true);
    parts_.run_look([this, &clock = parts_.clock, wanted, done = std::move(done),
                     address = run_.address, pid = run_.pid] {
      const process::Listener found = address.port != 0
                                          ? process::listener_on_port(address.port, pid)
                                          : process::listener_on_socket(address.socket, pid);
      clock.post([this, wanted, done, found] {
        if (!*wanted) return;  // this may be gone, too
        warn_of(found);
        done(describe(found));
      });
    });
    return Timer(std::make_unique<DropAnswer>(std::move(wanted)));
  }

  Timer call(const rpc::CommandRequest& request,
             std::function<void(Result<rpc::CommandAnswer>)> done) override {
    process::HttpRequest http;
    http.path = request.path;
    http.body = request.body;
    http.key = run_.key;
    http.deadline = request.deadline;
    return process::http_call(parts_.io, run_.address, http,
                              [done = std::move(done)](Result<process::HttpAnswer> got) {
                                if (!got) return done(fail(std::move(got).error()));
                                done(rpc::CommandAnswer{got->status, std::move(got->body)});
                              });
  }

  std::unique_ptr<rpc::CommandStream> post(rpc::CommandPost post,
                                           rpc::CommandStreamSink& sink) override {
    auto check = [this](std::function<void(Status)> done) {
      return Timer(std::make_unique<ConnectionCheck>(parts_.clock, *this, std::move(done)));
    };
    return std::make_unique<RealStream>(parts_.io, run_, std::move(post), std::move(check), sink);
  }

 private:
  [[nodiscard]] rpc::CommandListener describe(const process::Listener& found) const {
    switch (found.who) {
      case process::Answerer::kNobody:
        return {Who::kNobody, {}};
      case process::Answerer::kChild:
        return {Who::kChild, {}};
      case process::Answerer::kOther:
        break;
    }
    const std::string place =
        run_.address.port != 0 ? "port " + std::to_string(run_.address.port) : "its socket";
    return {Who::kOther, place + " is held by " + found.other};
  }

  void warn_of(const process::Listener& found) {
    if (!found.everywhere || std::exchange(warned_, true)) return;
    parts_.events.emit_typed(events::WorkerExposed{
        .model = run_.model, .instance = instance_, .port = run_.address.port});
  }

  const WorkerConnectors::Parts& parts_;
  const CommandRun run_;
  const std::string instance_;
  bool warned_ = false;
};

}  // namespace

std::unique_ptr<rpc::WorkerClient> WorkerConnectors::connect(const std::string& socket_path,
                                                             const std::string& instance_id,
                                                             rpc::WorkerObserver& observer) {
  std::optional<CommandRun> run = parts_.runs.find(instance_id);
  if (!run) return parts_.workers.connect(socket_path, instance_id, observer);
  rpc::CommandProbe probe = run->probe;
  const std::uint32_t sequences = run->sequences;
  return std::make_unique<rpc::CommandClient>(
      parts_.clock, std::make_unique<RealPeer>(parts_, *std::move(run), instance_id),
      std::move(probe), sequences, observer, parts_.run_blocking);
}

}  // namespace berth
