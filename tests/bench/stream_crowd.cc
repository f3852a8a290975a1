#include "tests/bench/stream_crowd.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "tests/fake_engine/fake_engine.h"

namespace berth::bench {
namespace {

namespace json = boost::json;
using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kMostGaps = 2'000'000;

double microseconds(SteadyClock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

// Short, since a worker reads few tokens of prompts beside streams that get five a second.
std::string prompt_of(std::uint32_t number) {
  constexpr std::string_view kDigits =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  static_assert(kDigits.size() * kDigits.size() >= StreamCrowd::kMostStreams);
  return {kDigits[number / kDigits.size()], kDigits[number % kDigits.size()]};
}

std::string expected_text(std::uint32_t number, std::uint32_t tokens) {
  const std::string prompt = prompt_of(number);
  std::vector<worker::TokenId> ids;
  for (const char c : prompt) ids.push_back(static_cast<unsigned char>(c));
  return worker::FakeEngine::endless_answer_to(ids, tokens);
}

}  // namespace

// One stream: reads server-sent events and compares the text with what must come.
class StreamCrowd::Stream final : public Connection {
 public:
  Stream(StreamCrowd& crowd, std::uint32_t number)
      : Connection([this](std::string_view bytes) { return on_body(bytes); }),
        crowd_(crowd),
        expected_(expected_text(number, crowd.options_.tokens)),
        number_(number) {}

  Status start() {
    if (Status there = crowd_.poller_.connect(*this, crowd_.options_.server); !there) return there;
    const json::object body = {{"model", crowd_.options_.model},
                               {"prompt", prompt_of(number_)},
                               {"max_tokens", crowd_.options_.tokens},
                               {"temperature", 0},
                               {"stream", true}};
    started_ = SteadyClock::now();
    return crowd_.poller_.send(
        *this, post_request(crowd_.options_.server, "/v1/completions", json::serialize(body)));
  }

  Status on_complete() override {
    end();
    return {};
  }

  Status on_failure(Error error) override {
    fault(crowd_.result_.unterminated, error.message);
    end();
    return {};
  }

 private:
  Status on_body(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::size_t end = bytes.find('\n');
      line_.append(bytes.substr(0, end));
      if (end == std::string_view::npos) break;
      bytes.remove_prefix(end + 1);
      on_line(line_);
      line_.clear();
    }
    return {};
  }

  void on_line(std::string_view line) {
    constexpr std::string_view kData = "data: ";
    if (answer().status() != 200 || !line.starts_with(kData)) {
      if (answer().status() != 200) refusal_.append(line);
      return;  // a comment, or the empty line behind an event
    }
    line.remove_prefix(kData.size());
    if (done_) return fault(crowd_.result_.wrong_text, "an event behind [DONE]");
    if (line == "[DONE]") {
      done_ = true;
      return;
    }
    boost::system::error_code problem;
    const json::value event = json::parse({line.data(), line.size()}, problem);
    const json::value* const choice = problem ? nullptr : event.find_pointer("/choices/0", problem);
    if (choice == nullptr) return fault(crowd_.result_.wrong_text, std::string(line));
    on_choice(choice->as_object());
  }

  void on_choice(const json::object& choice) {
    if (const auto* text = choice.if_contains("text"); text != nullptr && text->is_string()) {
      on_text(text->get_string());
    }
    const auto* reason = choice.if_contains("finish_reason");
    if (reason != nullptr && reason->is_string()) finished_ = reason->get_string() == "length";
  }

  void on_text(std::string_view text) {
    if (text.empty()) return;
    const auto now = SteadyClock::now();
    auto& gaps = crowd_.result_.gap_us;
    if (received_ == 0) {
      crowd_.result_.first_token_us.push_back(microseconds(now - started_));
      if (++crowd_.begun_ == crowd_.options_.streams) crowd_.steady_from_ = now;
    } else if (gaps.size() < kMostGaps) {
      gaps.push_back(microseconds(now - last_));
    }
    last_ = now;
    const std::string_view expected(expected_);
    const auto ours = expected.substr(std::min(received_, expected.size()), text.size());
    if (text != ours) {
      fault(crowd_.result_.wrong_text, "at " + std::to_string(received_) + ": " +
                                           std::string(text) + " instead of " + std::string(ours));
    }
    received_ += text.size();
    crowd_.result_.tokens += text.size();
    if (crowd_.begun_ == crowd_.options_.streams && crowd_.ended_ == 0) {
      crowd_.result_.steady_tokens += text.size();
      crowd_.result_.steady_us = microseconds(now - crowd_.steady_from_);
    }
  }

  void end() {
    if (std::exchange(ended_, true)) return;
    ++crowd_.ended_;
    auto& result = crowd_.result_;
    if (answer().status() != 200) fault(result.refused, refusal_ + line_);
    if (!done_ || !finished_) fault(result.unterminated, "no [DONE], or no finish reason");
    if (received_ != expected_.size()) {
      fault(result.wrong_text, std::to_string(received_) + " tokens");
    }
    if (!faulty_) ++result.complete;
    crowd_.poller_.close(*this);
  }

  void fault(std::uint32_t& count, const std::string& what) {
    if (std::exchange(faulty_, true)) return;
    ++count;
    auto& first = crowd_.result_.first_fault;
    if (first.empty()) first = "stream " + std::to_string(number_) + ": " + what;
  }

  StreamCrowd& crowd_;
  const std::string expected_;  // a byte for each token
  const std::uint32_t number_;
  std::size_t received_ = 0;
  std::string line_;
  std::string refusal_;
  bool finished_ = false;
  bool done_ = false;
  bool ended_ = false;
  bool faulty_ = false;
  SteadyClock::time_point started_;
  SteadyClock::time_point last_;
};

StreamCrowd::StreamCrowd(CrowdOptions options) : options_(std::move(options)) {}

StreamCrowd::~StreamCrowd() = default;

SteadyClock::time_point StreamCrowd::deadline() const {
  return began_ + options_.time;
}

Status StreamCrowd::start() {
  if (options_.streams > kMostStreams) {
    return fail(Reason::kInvalidArgument, "at most 3000 streams have prompts of their own");
  }
  Result<Poller> poller = Poller::make();
  if (!poller) return fail(poller.error());
  poller_ = std::move(*poller);
  for (std::uint32_t number = 0; number < options_.streams; ++number) {
    streams_.push_back(std::make_unique<Stream>(*this, number));
  }
  began_ = SteadyClock::now();
  for (const auto& stream : streams_) {
    if (Status started = stream->start(); !started) return started;
  }
  return {};
}

Result<CrowdResult> StreamCrowd::run() {
  if (Status started = start(); !started) return fail(started.error());
  const auto all_ended = [this] { return ended_ == options_.streams; };
  if (Status served = poller_.run(all_ended, deadline()); !served) return fail(served.error());
  result_.wall_us = microseconds(SteadyClock::now() - began_);
  return std::move(result_);
}

Status StreamCrowd::open() {
  if (Status started = start(); !started) return started;
  std::size_t seen = 0;
  const auto all_open = [this, &seen] {
    while (seen < streams_.size() && streams_[seen]->answer().head_complete()) ++seen;
    return seen == streams_.size() || ended_ > 0;
  };
  if (Status served = poller_.run(all_open, deadline()); !served) return served;
  if (ended_ > 0) return fail(Reason::kInternal, result_.first_fault);
  return {};
}

void StreamCrowd::hang_up() {
  for (const auto& stream : streams_) poller_.close(*stream);
}

}  // namespace berth::bench
