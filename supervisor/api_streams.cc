#include "supervisor/api_streams.h"

#include <chrono>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "common/proto_json/proto_json.h"
#include "supervisor/admin/convert.h"
#include "supervisor/admin/convert_failure.h"
#include "supervisor/gateway/http/error_response.h"

namespace berth {
namespace {

constexpr std::size_t kMostBehind = 4UL << 20;  // bytes
constexpr Duration kKeepAlive = std::chrono::seconds(15);

std::string to_line(const google::protobuf::Message& message) {
  return to_json(message, JsonWriter::Layout::kLine);
}

gateway::HttpResponse stream_head(std::string type) {
  gateway::HttpResponse head;
  head.content_type = std::move(type);
  head.headers = {{"Cache-Control", "no-cache"},
                  {"X-Accel-Buffering", "no"},
                  {"X-Content-Type-Options", "nosniff"}};
  return head;
}

class EventStream : public gateway::Handler,
                    public admin::EventListener,
                    public std::enable_shared_from_this<EventStream> {
 public:
  EventStream(Clock& clock, std::shared_ptr<gateway::Reply> reply)
      : clock_(clock), reply_(std::move(reply)) {}

  void run(admin::ServerState& state, admin::EventAsk ask) {
    reply_->begin(stream_head("text/event-stream"));
    const bool follow = ask.follow;
    const std::lock_guard lock(mutex_);
    feed_ = admin::EventFeed::start(state, std::move(ask), weak_from_this());
    if (!follow) return;
    clock_.post([beat = std::make_shared<Beat>(clock_, weak_from_this())] { beat->arm(); });
  }

  void on_feed_event(v1::Event event) override {
    give("id: " + std::to_string(event.sequence()) + "\nevent: " + event.name() +
         "\ndata: " + to_line(event) + "\n\n");
  }
  void on_feed_end() override {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    if (queue_.empty()) finish();
  }

  void on_room() override {
    const std::lock_guard lock(mutex_);
    room_ = true;
    while (room_ && !over_ && !queue_.empty()) {
      queued_bytes_ -= queue_.front().size();
      room_ = reply_->write(std::move(queue_.front()));
      queue_.pop_front();
    }
    if (ended_ && queue_.empty()) finish();
  }
  void on_gone() override {
    const std::lock_guard lock(mutex_);
    stop();
  }

 private:
  void give(std::string piece) {
    const std::lock_guard lock(mutex_);
    if (over_) return;
    if (room_ && queue_.empty()) {
      room_ = reply_->write(std::move(piece));
      return;
    }
    queued_bytes_ += piece.size();
    queue_.push_back(std::move(piece));
    if (queued_bytes_ <= kMostBehind) return;
    reply_->write(
        "event: overflow\ndata: {\"message\":\"Events came faster than they were read; ask again "
        "with Last-Event-ID.\"}\n\n");
    finish();
  }

  // Under the lock.
  void finish() {
    if (over_) return;
    reply_->end();
    stop();
  }
  void stop() {
    over_ = true;
    queue_.clear();
    // The feed calls under the event hub's lock, and ends itself later.
    if (feed_) feed_->stop();
  }

  // Says that the connection lives; whether it does.
  bool say_alive() {
    const std::lock_guard lock(mutex_);
    if (!over_ && room_ && queue_.empty()) room_ = reply_->write(": alive\n\n");
    return !over_;
  }

  // The core strand's: timers may end there only, and the stream ends elsewhere.
  struct Beat : std::enable_shared_from_this<Beat> {
    Beat(Clock& of_clock, std::weak_ptr<EventStream> of_stream)
        : clock(of_clock), stream(std::move(of_stream)) {}
    void arm() {
      timer = clock.sleep_for(kKeepAlive, [self = shared_from_this()] {
        self->timer.reset();
        const std::shared_ptr<EventStream> alive = self->stream.lock();
        if (alive && alive->say_alive()) self->arm();
      });
    }
    Clock& clock;
    const std::weak_ptr<EventStream> stream;
    Timer timer;
  };

  Clock& clock_;
  const std::shared_ptr<gateway::Reply> reply_;
  std::mutex mutex_;
  std::shared_ptr<admin::EventFeed> feed_;
  std::deque<std::string> queue_;
  std::size_t queued_bytes_ = 0;
  bool room_ = true;
  bool ended_ = false;
  bool over_ = false;
};

class LogStream : public gateway::Handler,
                  public admin::LogListener,
                  public std::enable_shared_from_this<LogStream> {
 public:
  LogStream(const gateway::HttpRequest& request, std::shared_ptr<gateway::Reply> reply)
      : id_(request.id), caller_(request.caller), reply_(std::move(reply)) {}

  void run(admin::ServerState& state, admin::LogAsk ask) {
    const std::lock_guard lock(mutex_);
    reader_ = admin::LogReader::start(state, std::move(ask), weak_from_this());
  }

  bool on_log(std::string chunk) override {
    const std::lock_guard lock(mutex_);
    begin();
    const bool room = reply_->write(std::move(chunk));
    paused_ = !room;
    return room;
  }
  void on_log_end(Status status) override {
    const std::lock_guard lock(mutex_);
    if (!status && begun_) return reply_->break_off();
    if (!status) return reply_->send(gateway::error_response(status.error(), id_, caller_));
    begin();
    reply_->end();
  }

  void on_room() override {
    const std::lock_guard lock(mutex_);
    if (std::exchange(paused_, false)) reader_->resume();
  }
  void on_gone() override {
    const std::lock_guard lock(mutex_);
    if (reader_) reader_->stop();
  }

 private:
  void begin() {
    if (std::exchange(begun_, true)) return;
    reply_->begin(stream_head("text/plain; charset=utf-8"));
  }

  const std::string id_;
  const core::Caller caller_;
  const std::shared_ptr<gateway::Reply> reply_;
  std::mutex mutex_;
  std::shared_ptr<admin::LogReader> reader_;
  bool begun_ = false;
  bool paused_ = false;
};

class LoadAnswer : public gateway::Handler, public admin::LoadListener {
 public:
  LoadAnswer(const gateway::HttpRequest& request, bool wait, std::shared_ptr<gateway::Reply> reply)
      : id_(request.id), caller_(request.caller), wait_(wait), reply_(std::move(reply)) {}

  void run(admin::ServerState& state, admin::LoadAsk ask, const std::shared_ptr<LoadAnswer>& self) {
    const std::lock_guard lock(mutex_);
    operation_ = admin::LoadOperation::start(state, std::move(ask), self);
  }

  void on_load_lifted(const core::FailureRecord& record) override {
    lifted_ = admin::to_proto(record, caller_);
  }
  // A reply that is no stream commits its status only when it is complete.
  void on_load_progress(const residency::ClaimProgress& /*progress*/) override {}
  void on_load_done(std::optional<residency::InstanceSnapshot> instance) override {
    JsonWriter json(JsonWriter::Layout::kLine);
    json.begin_object();
    if (lifted_) {
      json.key("lifted");
      write_json(json, *lifted_);
    }
    json.key(wait_ ? "ready" : "started");
    write_json(json, instance ? admin::to_proto(*instance, caller_) : v1::Instance());
    json.end_object();
    gateway::HttpResponse response;
    response.body = json.str() + "\n";
    reply_->send(std::move(response));
  }
  void on_load_failed(const Error& error) override {
    reply_->send(gateway::error_response(error, id_, caller_));
  }

  void on_gone() override {
    const std::lock_guard lock(mutex_);
    if (operation_) operation_->stop();
  }

 private:
  const std::string id_;
  const core::Caller caller_;
  const bool wait_;
  const std::shared_ptr<gateway::Reply> reply_;
  std::optional<v1::FailureRecord> lifted_;  // core strand
  std::mutex mutex_;
  std::shared_ptr<admin::LoadOperation> operation_;
};

}  // namespace

std::shared_ptr<gateway::Handler> stream_events(admin::ServerState& state, admin::EventAsk ask,
                                                std::shared_ptr<gateway::Reply> reply) {
  const auto stream = std::make_shared<EventStream>(state.services.clock, std::move(reply));
  stream->run(state, std::move(ask));
  return stream;
}

std::shared_ptr<gateway::Handler> stream_log(admin::ServerState& state, admin::LogAsk ask,
                                             const gateway::HttpRequest& request,
                                             std::shared_ptr<gateway::Reply> reply) {
  const auto stream = std::make_shared<LogStream>(request, std::move(reply));
  stream->run(state, std::move(ask));
  return stream;
}

std::shared_ptr<gateway::Handler> answer_load(admin::ServerState& state, admin::LoadAsk ask,
                                              const gateway::HttpRequest& request,
                                              std::shared_ptr<gateway::Reply> reply) {
  const auto answer = std::make_shared<LoadAnswer>(request, ask.wait, std::move(reply));
  answer->run(state, std::move(ask), answer);
  return answer;
}

}  // namespace berth
