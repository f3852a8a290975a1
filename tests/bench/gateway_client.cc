// The client of tests/bench/gateway. Prints one JSON object; times are microseconds.
//
//   gateway_client streams HOST:PORT MODEL STREAMS TOKENS SECONDS
//       that many streams at once of a fake model; each must be its own, whole
//   gateway_client hold HOST:PORT MODEL STREAMS SECONDS
//       opens them, says {"open":N}, hangs up when standard input ends
//   gateway_client http|berthd|worker ADDRESS MODEL LANES REQUESTS SECONDS
//       the same short request again and again, in so many lanes
//
// SECONDS bounds the whole.

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <iostream>
#include <string>
#include <vector>

#include "tests/bench/request_load.h"
#include "tests/bench/stream_crowd.h"

namespace berth::bench {
namespace {

namespace json = boost::json;

Result<std::uint32_t> number(const std::string& text) {
  constexpr std::uint32_t kMost = 10'000'000;
  std::uint32_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || value == 0 || value > kMost) {
    return fail(Reason::kInvalidArgument, text + " is not a number from 1 to 10000000");
  }
  return value;
}

json::array to_json(const std::vector<double>& values) {
  return json::array(values.begin(), values.end());
}

// So many values of an ordered list that its quantiles stay, few enough to be printed.
json::array quantiles(std::vector<double> values) {
  constexpr std::size_t kKept = 1000;
  std::sort(values.begin(), values.end());
  if (values.size() <= kKept) return to_json(values);
  json::array kept;
  for (std::size_t i = 0; i <= kKept; ++i) kept.push_back(values[i * (values.size() - 1) / kKept]);
  return kept;
}

json::object to_json(const CrowdResult& result) {
  return {{"complete", result.complete},
          {"refused", result.refused},
          {"wrong_text", result.wrong_text},
          {"unterminated", result.unterminated},
          {"first_fault", result.first_fault},
          {"tokens", result.tokens},
          {"wall", result.wall_us},
          {"steady", result.steady_us},
          {"steady_tokens", result.steady_tokens},
          {"first_token", quantiles(result.first_token_us)},
          {"gap", quantiles(result.gap_us)}};
}

Result<CrowdOptions> crowd_options(const std::vector<std::string>& arguments) {
  CrowdOptions options;
  const auto address = Address::parse(arguments[1]);
  if (!address) return fail(address.error());
  options.server = *address;
  options.model = arguments[2];
  const auto streams = number(arguments[3]);
  const auto seconds = number(arguments.back());
  if (!streams) return fail(streams.error());
  if (!seconds) return fail(seconds.error());
  options.streams = *streams;
  options.time = std::chrono::seconds(*seconds);
  return options;
}

Result<json::object> run_streams(const std::vector<std::string>& arguments) {
  auto options = crowd_options(arguments);
  if (!options) return fail(options.error());
  const auto tokens = number(arguments[4]);
  if (!tokens) return fail(tokens.error());
  options->tokens = *tokens;
  StreamCrowd crowd(std::move(*options));
  const auto result = crowd.run();
  if (!result) return fail(result.error());
  return to_json(*result);
}

Result<json::object> hold_streams(const std::vector<std::string>& arguments) {
  auto options = crowd_options(arguments);
  if (!options) return fail(options.error());
  constexpr std::uint32_t kMany = 100;  // more than will come
  options->tokens = kMany;
  const std::uint32_t streams = options->streams;
  StreamCrowd crowd(std::move(*options));
  if (Status opened = crowd.open(); !opened) return fail(opened.error());
  std::cout << json::serialize(json::object{{"open", streams}}) << std::endl;
  char ignored = 0;
  while (::read(STDIN_FILENO, &ignored, 1) > 0) {
  }
  crowd.hang_up();
  return json::object{{"closed", streams}};
}

Result<json::object> run_load(const std::vector<std::string>& arguments) {
  LoadOptions options;
  options.model = arguments[2];
  const auto lanes = number(arguments[3]);
  const auto requests = number(arguments[4]);
  const auto seconds = number(arguments[5]);
  for (const auto* one : {&lanes, &requests, &seconds}) {
    if (!*one) return fail(one->error());
  }
  options.lanes = *lanes;
  options.requests = *requests;
  options.time = std::chrono::seconds(*seconds);
  Result<LoadResult> result;
  if (arguments[0] == "http") {
    const auto address = Address::parse(arguments[1]);
    if (!address) return fail(address.error());
    result = http_load(*address, options);
  } else {
    const auto service = arguments[0] == "worker" ? Service::kWorker : Service::kBerthd;
    result = grpc_load(arguments[1], service, options);
  }
  if (!result) return fail(result.error());
  return json::object{{"wall", result->wall_us}, {"latency", to_json(result->latency_us)}};
}

Result<json::object> run(const std::vector<std::string>& arguments) {
  const std::string mode = arguments.empty() ? std::string() : arguments[0];
  if (mode == "streams" && arguments.size() == 6) return run_streams(arguments);
  if (mode == "hold" && arguments.size() == 5) return hold_streams(arguments);
  const bool load = mode == "http" || mode == "berthd" || mode == "worker";
  if (load && arguments.size() == 6) return run_load(arguments);
  return fail(Reason::kInvalidArgument, "usage: gateway_client streams|hold|http|berthd|worker …");
}

// A descriptor for each stream.
void raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace
}  // namespace berth::bench

int main(int argc, char** argv) {
  berth::bench::raise_file_limit();
  const auto result = berth::bench::run(std::vector<std::string>(argv + 1, argv + argc));
  if (!result) {
    std::cerr << "gateway_client: " << result.error().message << '\n';
    return 1;
  }
  std::cout << boost::json::serialize(*result) << '\n';
  return 0;
}
