#include "supervisor/api_streams.h"

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/proto_json/proto_json.h"
#include "common/reason.h"
#include "supervisor/admin/convert_failure.h"
#include "supervisor/gateway/http/error_response.h"
#include "supervisor/gateway/http/stream_head.h"

namespace berth {
namespace {

constexpr Duration kKeepAlive = std::chrono::seconds(15);

std::string to_line(const google::protobuf::Message& message) {
  return to_json(message, JsonWriter::Layout::kLine);
}

gateway::HttpResponse raw_stream_head(std::string type) {
  gateway::HttpResponse head = gateway::stream_head(std::move(type));
  head.headers.push_back({"X-Content-Type-Options", "nosniff"});
  return head;
}

class EventStream : public gateway::Handler,
                    public admin::EventListener,
                    public std::enable_shared_from_this<EventStream> {
 public:
  EventStream(Clock& clock, std::shared_ptr<gateway::Reply> reply)
      : clock_(clock), reply_(std::move(reply)) {}

  void run(admin::ServerState& state, admin::EventAsk ask,
           std::unique_ptr<admin::EventHub::Place> place) {
    reply_->begin(raw_stream_head("text/event-stream"));
    const bool follow = ask.follow;
    const std::lock_guard lock(mutex_);
    feed_ = admin::EventFeed::start(state, std::move(ask), std::move(place), weak_from_this());
    if (!follow) return;
    clock_.post([beat = std::make_shared<Beat>(clock_, weak_from_this())] { beat->arm(); });
  }

  bool on_feed_event(v1::Event event) override {
    // One without a number changes nothing about where a client would go on.
    const std::string id =
        event.sequence() == 0 ? "" : "id: " + std::to_string(event.sequence()) + "\n";
    const std::string piece = id + "event: " + event.name() + "\ndata: " + to_line(event) + "\n\n";
    const std::lock_guard lock(mutex_);
    if (!over_) room_ = reply_->write(piece);
    return room_;
  }
  void on_feed_end() override {
    const std::lock_guard lock(mutex_);
    finish();
  }
  void on_feed_failed(const Error& error) override {
    const std::lock_guard lock(mutex_);
    if (over_) return;
    JsonWriter json(JsonWriter::Layout::kLine);
    json.begin_object();
    json.key("message");
    json.text(error.message);
    json.end_object();
    const std::string_view name =
        error.reason == Reason::kQueueFull ? "overflow" : reason_info(error.reason).name;
    reply_->write("event: " + std::string(name) + "\ndata: " + json.str() + "\n\n");
    finish();
  }

  void on_room() override {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(room_, true) && feed_) feed_->resume();
  }
  void on_gone() override {
    const std::lock_guard lock(mutex_);
    stop();
  }

 private:
  // Under the lock.
  void finish() {
    if (over_) return;
    reply_->end();
    stop();
  }
  void stop() {
    over_ = true;
    if (feed_) feed_->stop();
  }

  // Says that the connection lives; whether it does.
  bool say_alive() {
    const std::lock_guard lock(mutex_);
    if (!over_ && room_) reply_->write(": alive\n\n");
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
  bool room_ = true;  // false: the feed is paused
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
    reply_->begin(raw_stream_head("text/plain; charset=utf-8"));
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
  void on_load_done(const std::optional<v1::Instance>& instance) override {
    JsonWriter json(JsonWriter::Layout::kLine);
    json.begin_object();
    if (lifted_) {
      json.key("lifted");
      write_json(json, *lifted_);
    }
    json.key(wait_ ? "ready" : "started");
    write_json(json, instance.value_or(v1::Instance()));
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
                                                const gateway::HttpRequest& request,
                                                std::shared_ptr<gateway::Reply> reply) {
  auto place = state.events.take_place(ask.caller.tenant);
  if (!place) {
    reply->send(gateway::error_response(place.error(), request.id, request.caller));
    return nullptr;
  }
  const auto stream = std::make_shared<EventStream>(state.services.clock, std::move(reply));
  stream->run(state, std::move(ask), *std::move(place));
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
