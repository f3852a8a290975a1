#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <memory>

#include "tests/bench/request_load.h"

namespace berth::bench {
namespace {

namespace json = boost::json;
using SteadyClock = std::chrono::steady_clock;

// What the lanes share.
struct Load {
  Poller poller;
  Address server;
  std::string request;
  std::uint32_t to_send = 0;
  std::uint32_t unanswered = 0;
  std::vector<double> latency_us;
};

class Lane final : public Connection {
 public:
  explicit Lane(Load& load)
      : Connection([this](std::string_view bytes) {
          if (answer().status() != 200) refusal_.append(bytes);
          return Status();
        }),
        load_(load) {}

  Status next() {
    if (load_.to_send == 0) {
      // llama-server has a thread for each connection, and fewer threads than there are lanes.
      load_.poller.close(*this);
      return {};
    }
    --load_.to_send;
    if (!open()) {
      if (Status there = load_.poller.connect(*this, load_.server); !there) return there;
    }
    answer_.reset();
    sent_ = SteadyClock::now();
    return load_.poller.send(*this, load_.request);
  }

  Status on_complete() override {
    const std::chrono::duration<double, std::micro> took = SteadyClock::now() - sent_;
    if (answer().status() != 200) {
      return fail(Reason::kInternal, std::to_string(answer().status()) + ": " + refusal_);
    }
    load_.latency_us.push_back(took.count());
    --load_.unanswered;
    if (answer().closes()) load_.poller.close(*this);
    return next();
  }

 private:
  Load& load_;
  SteadyClock::time_point sent_;
  std::string refusal_;
};

}  // namespace

Result<LoadResult> http_load(const Address& server, const LoadOptions& options) {
  Load load;
  Result<Poller> poller = Poller::make();
  if (!poller) return fail(poller.error());
  load.poller = std::move(*poller);
  load.server = server;
  const json::object body = {
      {"model", options.model}, {"prompt", kShortPrompt}, {"max_tokens", 1}, {"temperature", 0}};
  load.request = post_request(server, "/v1/completions", json::serialize(body));
  load.to_send = load.unanswered = options.requests;
  std::vector<std::unique_ptr<Lane>> lanes;
  for (std::uint32_t i = 0; i < options.lanes; ++i) {
    lanes.push_back(std::make_unique<Lane>(load));
    if (Status there = load.poller.connect(*lanes.back(), server); !there) {
      return fail(there.error());
    }
  }
  const auto began = SteadyClock::now();
  for (const auto& lane : lanes) {
    if (Status sent = lane->next(); !sent) return fail(sent.error());
  }
  const Status served =
      load.poller.run([&load] { return load.unanswered == 0; }, began + options.time);
  if (!served) return fail(served.error());
  const std::chrono::duration<double, std::micro> wall = SteadyClock::now() - began;
  return LoadResult{wall.count(), std::move(load.latency_us)};
}

}  // namespace berth::bench
