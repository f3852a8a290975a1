// The client that tests/bench/first_answer measures with, so that every server is measured by the
// same code. Prints one JSON object; times are microseconds.
//
//   bench_client http HOST:PORT MODEL COUNT        one-token chat requests to an OpenAI server
//   bench_client berthd ENDPOINT MODEL COUNT       the same to berthd
//   bench_client compare BERTHD WORKER MODEL COUNT TOKENS
//       the same request to berthd and directly to the worker, in turns
//   bench_client fails http|berthd ADDRESS MODEL COUNT
//       requests that must fail, and when they did
//   bench_client crowd ENDPOINT MODEL COUNT        one-token requests to berthd, all at once

#include <barrier>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "tests/bench/generation.h"
#include "tests/bench/http_request.h"

namespace berth::bench {
namespace {

namespace json = boost::json;

constexpr std::string_view kQuestion = "What is the capital of France?";
// The demo model answers it with more than 64 tokens.
constexpr std::string_view kLongQuestion = "Count to 40.";
constexpr std::uint32_t kMaxCount = 1'000'000;
constexpr std::uint32_t kWarmUp = 10;

double microseconds(Nanoseconds time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

Result<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || value > kMaxCount) {
    return fail(Reason::kInvalidArgument, std::string(text) + " is not a number up to 1000000");
  }
  return value;
}

Result<json::object> measure_http(std::string_view address, std::string_view model,
                                  std::uint32_t count) {
  const std::size_t colon = address.rfind(':');
  const Result<std::uint32_t> port = number(address.substr(colon + 1));
  if (colon == std::string_view::npos || !port || *port > 65'535) {
    return fail(Reason::kInvalidArgument, "HOST:PORT is expected: " + std::string(address));
  }
  const std::string host(address.substr(0, colon));
  const json::object request = {{"model", model},
                                {"max_tokens", 1},
                                {"temperature", 0},
                                {"messages", {{{"role", "user"}, {"content", kQuestion}}}}};
  const std::string body = json::serialize(request);
  json::array times;
  for (std::uint32_t i = 0; i < count; ++i) {
    // llama-server's router closes after each answer. As with gRPC the connection exists before the
    // time runs.
    Result<HttpConnection> connection =
        HttpConnection::open(host, static_cast<std::uint16_t>(*port));
    if (!connection) return fail(connection.error());
    const auto start = std::chrono::steady_clock::now();
    const Result<std::string> answer = connection->request("POST", "/v1/chat/completions", body);
    const auto end = std::chrono::steady_clock::now();
    if (!answer) return fail(answer.error());
    times.push_back(microseconds(end - start));
  }
  return json::object{{"whole", std::move(times)}};
}

Result<json::object> measure_berthd(const std::string& endpoint, std::string_view model,
                                    std::uint32_t count) {
  const auto berthd = Inference::to_berthd(endpoint);
  if (!berthd) return fail(berthd.error());
  const berth::v1::GenerateRequest request = chat_request(model, kQuestion, 1);
  json::array whole;
  json::array first;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Result<Measured> one = (*berthd)->generate(request);
    if (!one) return fail(one.error());
    whole.push_back(microseconds(one->whole));
    first.push_back(microseconds(one->first_token));
  }
  return json::object{{"whole", std::move(whole)}, {"first_token", std::move(first)}};
}

// Times of one side of a comparison, in the order of the requests.
struct Side {
  Inference* server = nullptr;
  json::array whole;
  json::array first_token;
  json::array streaming;  // from the first to the last token

  Result<std::uint32_t> run(const berth::v1::GenerateRequest& request, bool record) {
    const Result<Measured> one = server->generate(request);
    if (!one) return fail(one.error());
    if (record) {
      whole.push_back(microseconds(one->whole));
      first_token.push_back(microseconds(one->first_token));
      streaming.push_back(microseconds(one->last_token - one->first_token));
    }
    return one->tokens;
  }

  [[nodiscard]] json::object to_json() const {
    return {{"whole", whole}, {"first_token", first_token}, {"streaming", streaming}};
  }
};

Result<json::object> compare(const std::string& berthd_endpoint, const std::string& worker_endpoint,
                             std::string_view model, std::uint32_t count, std::uint32_t tokens) {
  const auto berthd = Inference::to_berthd(berthd_endpoint);
  if (!berthd) return fail(berthd.error());
  const auto worker = Inference::to_worker(worker_endpoint);
  if (!worker) return fail(worker.error());
  const berth::v1::GenerateRequest request =
      chat_request(model, tokens > 1 ? kLongQuestion : kQuestion, tokens);

  Side through;
  through.server = berthd->get();
  Side direct;
  direct.server = worker->get();
  for (std::uint32_t i = 0; i < count + kWarmUp; ++i) {
    // Who goes first changes, so that neither side always finds the caches that the other left.
    Side* const order[2] = {i % 2 == 0 ? &through : &direct, i % 2 == 0 ? &direct : &through};
    for (Side* side : order) {
      const Result<std::uint32_t> generated = side->run(request, i >= kWarmUp);
      if (!generated) return fail(generated.error());
      if (*generated != tokens) {
        return fail(Reason::kInternal, "the answer has " + std::to_string(*generated) +
                                           " tokens instead of " + std::to_string(tokens));
      }
    }
  }
  return json::object{{"berthd", through.to_json()}, {"worker", direct.to_json()}};
}

// A server that is asked for what it cannot do.
using Ask = std::function<Status()>;

Result<Ask> asker(const std::string& kind, const std::string& address, const std::string& model) {
  if (kind == "http") {
    return [address, model]() -> Status {
      const auto times = measure_http(address, model, 1);
      return times ? Status() : fail(times.error());
    };
  }
  auto berthd = Inference::to_berthd(address);
  if (!berthd) return fail(berthd.error());
  return [server = std::shared_ptr<Inference>(std::move(*berthd)),
          request = chat_request(model, kQuestion, 1)]() -> Status {
    const Result<Measured> one = server->generate(request);
    return one ? Status() : fail(one.error());
  };
}

Result<json::object> measure_failures(const std::string& kind, const std::string& address,
                                      const std::string& model, std::uint32_t count) {
  const Result<Ask> ask = asker(kind, address, model);
  if (!ask) return fail(ask.error());
  json::array whole;
  json::array ended;
  std::string message;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const Status answer = (*ask)();
    whole.push_back(microseconds(std::chrono::steady_clock::now() - start));
    ended.push_back(microseconds(std::chrono::system_clock::now().time_since_epoch()));
    if (answer) return fail(Reason::kInternal, model + " answers, and should have failed");
    message = answer.error().message;
  }
  return json::object{
      {"whole", std::move(whole)}, {"ended_unix", std::move(ended)}, {"message", message}};
}

Result<json::object> measure_crowd(const std::string& endpoint, const std::string& model,
                                   std::uint32_t count) {
  constexpr std::uint32_t kMostThreads = 1000;
  if (count == 0 || count > kMostThreads) {
    return fail(Reason::kInvalidArgument, "a crowd has 1 to 1000 clients");
  }
  const auto berthd = Inference::to_berthd(endpoint);
  if (!berthd) return fail(berthd.error());
  const berth::v1::GenerateRequest request = chat_request(model, kQuestion, 1);
  std::vector<Result<Measured>> answers(count, Result<Measured>(fail(Reason::kInternal, "")));
  std::barrier<> together(static_cast<std::ptrdiff_t>(count));
  {
    std::vector<std::jthread> clients;
    for (std::uint32_t i = 0; i < count; ++i) {
      clients.emplace_back([&, i] {
        together.arrive_and_wait();
        answers[i] = (*berthd)->generate(request);
      });
    }
  }
  json::array whole;
  for (const Result<Measured>& one : answers) {
    if (!one) return fail(one.error());
    whole.push_back(microseconds(one->whole));
  }
  return json::object{{"whole", std::move(whole)}};
}

Result<json::object> run(const std::vector<std::string>& arguments) {
  const std::string mode = arguments.empty() ? std::string() : arguments[0];
  if ((mode == "http" || mode == "berthd") && arguments.size() == 4) {
    const Result<std::uint32_t> count = number(arguments[3]);
    if (!count) return fail(count.error());
    return mode == "http" ? measure_http(arguments[1], arguments[2], *count)
                          : measure_berthd(arguments[1], arguments[2], *count);
  }
  if (mode == "compare" && arguments.size() == 6) {
    const Result<std::uint32_t> count = number(arguments[4]);
    if (!count) return fail(count.error());
    const Result<std::uint32_t> tokens = number(arguments[5]);
    if (!tokens) return fail(tokens.error());
    return compare(arguments[1], arguments[2], arguments[3], *count, *tokens);
  }
  if (mode == "fails" && arguments.size() == 5) {
    const Result<std::uint32_t> count = number(arguments[4]);
    if (!count) return fail(count.error());
    return measure_failures(arguments[1], arguments[2], arguments[3], *count);
  }
  if (mode == "crowd" && arguments.size() == 4) {
    const Result<std::uint32_t> count = number(arguments[3]);
    if (!count) return fail(count.error());
    return measure_crowd(arguments[1], arguments[2], *count);
  }
  return fail(Reason::kInvalidArgument, "usage: bench_client http|berthd|compare|fails|crowd …");
}

}  // namespace
}  // namespace berth::bench

int main(int argc, char** argv) {
  const auto result = berth::bench::run(std::vector<std::string>(argv + 1, argv + argc));
  if (!result) {
    std::cerr << "bench_client: " << result.error().message << '\n';
    return 1;
  }
  std::cout << boost::json::serialize(*result) << '\n';
  return 0;
}
