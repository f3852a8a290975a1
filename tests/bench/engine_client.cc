// The client that tests/bench/engine measures with: the same requests, by the same code, to a
// berth-worker's socket and to llama-server. Prompts are random tokens, so that nothing is reused.
// `http` streams each token as berth's interface always does; `http-whole` asks llama-server for
// the answer in one piece. Prints one JSON object; times are microseconds.
//
//   engine_client worker|http|http-whole ADDRESS together COUNT PROMPT GENERATE SEED
//       COUNT requests at once, of PROMPT tokens, GENERATE tokens of answer each
//   engine_client worker|http|http-whole ADDRESS beside LONG SHORT SEED
//       requests of SHORT tokens with one token of answer, one after the other, as long as a prompt
//       of LONG tokens is being read

#include <atomic>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <chrono>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "tests/bench/generation.h"
#include "tests/bench/http_request.h"

namespace berth::bench {
namespace {

namespace json = boost::json;
using SteadyClock = std::chrono::steady_clock;

// Ordinary words in every vocabulary of the generated models.
constexpr std::int32_t kFirstToken = 1000;
constexpr std::int32_t kLastToken = 30'000;
constexpr auto kHeadStart = std::chrono::milliseconds(200);  // of the long prompt
constexpr std::size_t kMostBeside = 64;

using Tokens = std::vector<std::int32_t>;

Tokens random_prompt(std::uint32_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<std::int32_t> token(kFirstToken, kLastToken);
  Tokens tokens(count);
  for (auto& one : tokens) one = token(random);
  return tokens;
}

double microseconds(Nanoseconds time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

// One connection to the server that is measured. One thread.
class Server {
 public:
  Server() = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  virtual ~Server() = default;

  // Greedy, exactly `count` tokens. Returns how long it took.
  virtual Result<Nanoseconds> generate(const Tokens& prompt, std::uint32_t count) = 0;
};

Status check_count(std::uint64_t got, std::uint32_t wanted) {
  if (got == wanted) return {};
  return fail(Reason::kInternal, "the answer has " + std::to_string(got) + " tokens instead of " +
                                     std::to_string(wanted));
}

class Worker final : public Server {
 public:
  explicit Worker(std::unique_ptr<Inference> inference) : inference_(std::move(inference)) {}

  Result<Nanoseconds> generate(const Tokens& prompt, std::uint32_t count) override {
    berth::v1::GenerateRequest request;
    request.mutable_tokens()->mutable_ids()->Assign(prompt.begin(), prompt.end());
    request.mutable_sampling()->set_temperature(0);
    request.mutable_sampling()->set_ignore_eos(true);
    request.set_max_tokens(count);
    const auto measured = inference_->generate(request);
    if (!measured) return fail(measured.error());
    if (auto right = check_count(measured->tokens, count); !right) return fail(right.error());
    return measured->whole;
  }

 private:
  std::unique_ptr<Inference> inference_;
};

// The last event of a streamed answer, which ends with it: the data of its last line that has some.
std::string_view last_event(std::string_view answer) {
  constexpr std::string_view kData = "data: ";
  const std::size_t at = answer.rfind(kData);
  if (at == std::string_view::npos) return {};
  answer.remove_prefix(at + kData.size());
  return answer.substr(0, answer.find('\n'));
}

class LlamaServer final : public Server {
 public:
  LlamaServer(HttpConnection connection, bool stream)
      : connection_(std::move(connection)), stream_(stream) {}

  Result<Nanoseconds> generate(const Tokens& prompt, std::uint32_t count) override {
    const json::object request = {{"prompt", json::array(prompt.begin(), prompt.end())},
                                  {"n_predict", count},
                                  {"temperature", 0},
                                  {"ignore_eos", true},
                                  {"cache_prompt", false},
                                  {"stream", stream_}};
    const std::string body = json::serialize(request);
    const auto start = SteadyClock::now();
    const auto answer = connection_.request("POST", "/completion", body);
    const Nanoseconds whole = SteadyClock::now() - start;
    if (!answer) return fail(answer.error());
    std::error_code problem;
    const auto parsed =
        json::parse(stream_ ? last_event(*answer) : std::string_view(*answer), problem);
    const auto* const tokens =
        problem ? nullptr : parsed.as_object().if_contains("tokens_predicted");
    if (tokens == nullptr) return fail(Reason::kInternal, "no answer of llama-server: " + *answer);
    if (auto right = check_count(tokens->to_number<std::uint64_t>(), count); !right) {
      return fail(right.error());
    }
    return whole;
  }

 private:
  HttpConnection connection_;
  bool stream_;
};

Result<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) {
    return fail(Reason::kInvalidArgument, std::string(text) + " is not a number");
  }
  return value;
}

Result<std::unique_ptr<Server>> connect(std::string_view kind, const std::string& address) {
  if (kind == "worker") {
    auto inference = Inference::to_worker(address);
    if (!inference) return fail(inference.error());
    return std::make_unique<Worker>(std::move(*inference));
  }
  const std::size_t colon = address.rfind(':');
  const auto port = number(std::string_view(address).substr(colon + 1));
  if (colon == std::string::npos || !port || *port > 65'535) {
    return fail(Reason::kInvalidArgument, "HOST:PORT is expected: " + address);
  }
  auto connection =
      HttpConnection::open(address.substr(0, colon), static_cast<std::uint16_t>(*port));
  if (!connection) return fail(connection.error());
  return std::make_unique<LlamaServer>(std::move(*connection), kind == "http");
}

Result<std::vector<std::unique_ptr<Server>>> connect_all(std::string_view kind,
                                                         const std::string& address,
                                                         std::uint32_t count) {
  std::vector<std::unique_ptr<Server>> servers;
  for (std::uint32_t i = 0; i < count; ++i) {
    auto server = connect(kind, address);
    if (!server) return fail(server.error());
    servers.push_back(std::move(*server));
  }
  return servers;
}

Result<json::object> together(std::string_view kind, const std::string& address,
                              const std::vector<std::uint32_t>& numbers) {
  const auto count = numbers[0];
  auto servers = connect_all(kind, address, count);
  if (!servers) return fail(servers.error());
  std::vector<Result<Nanoseconds>> times(count, Nanoseconds{});
  std::vector<std::thread> threads;
  std::atomic<bool> go{false};
  for (std::uint32_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i, prompt = random_prompt(numbers[1], numbers[3] + i)] {
      go.wait(false);
      times[i] = (*servers)[i]->generate(prompt, numbers[2]);
    });
  }
  const auto start = SteadyClock::now();
  go = true;
  go.notify_all();
  for (auto& thread : threads) thread.join();
  const Nanoseconds wall = SteadyClock::now() - start;
  json::array whole;
  for (const auto& time : times) {
    if (!time) return fail(time.error());
    whole.push_back(microseconds(*time));
  }
  return json::object{{"wall", microseconds(wall)}, {"whole", std::move(whole)}};
}

Result<json::object> beside(std::string_view kind, const std::string& address,
                            const std::vector<std::uint32_t>& numbers) {
  auto servers = connect_all(kind, address, 2);
  if (!servers) return fail(servers.error());
  std::atomic<bool> reading{true};
  Result<Nanoseconds> long_time = Nanoseconds{};
  std::thread reader([&] {
    long_time = servers->front()->generate(random_prompt(numbers[0], numbers[2]), 1);
    reading = false;
  });
  std::this_thread::sleep_for(kHeadStart);
  json::array first;
  Status problem;
  for (std::uint32_t i = 1; reading && problem && first.size() < kMostBeside; ++i) {
    const auto time = servers->back()->generate(random_prompt(numbers[1], numbers[2] + i), 1);
    if (!time) problem = fail(time.error());
    if (time) first.push_back(microseconds(*time));  // it began beside the long one
  }
  reader.join();
  if (!problem) return fail(problem.error());
  if (!long_time) return fail(long_time.error());
  return json::object{{"long", microseconds(*long_time)}, {"short", std::move(first)}};
}

Result<json::object> run(const std::vector<std::string>& arguments) {
  std::vector<std::uint32_t> numbers;
  for (std::size_t i = 3; i < arguments.size(); ++i) {
    const auto value = number(arguments[i]);
    if (!value) return fail(value.error());
    numbers.push_back(*value);
  }
  const bool known = arguments.size() > 3 && (arguments[0] == "worker" || arguments[0] == "http" ||
                                              arguments[0] == "http-whole");
  if (known && arguments[2] == "together" && numbers.size() == 4) {
    return together(arguments[0], arguments[1], numbers);
  }
  if (known && arguments[2] == "beside" && numbers.size() == 3) {
    return beside(arguments[0], arguments[1], numbers);
  }
  return fail(Reason::kInvalidArgument,
              "usage: engine_client worker|http|http-whole ADDRESS together|beside …");
}

}  // namespace
}  // namespace berth::bench

int main(int argc, char** argv) {
  const auto result = berth::bench::run(std::vector<std::string>(argv + 1, argv + argc));
  if (!result) {
    std::cerr << "engine_client: " << result.error().message << '\n';
    return 1;
  }
  std::cout << boost::json::serialize(*result) << '\n';
  return 0;
}
