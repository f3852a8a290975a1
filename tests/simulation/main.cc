#include <charconv>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "tests/simulation/scenario.h"
#ifdef BERTH_MUTATIONS
#include "tests/simulation/mutations.h"
#endif

namespace {

struct Options {
  std::uint64_t first = 1;
  std::uint64_t last = 100;
  std::uint64_t steps = 200;
  bool trace = false;
  bool reach = false;
  std::string mutation;
};

int usage() {
  std::fputs(
      "usage: berth_sim [--seeds A..B] [--steps N] [--trace] [--reach]"
#ifdef BERTH_MUTATIONS
      " --mutation NAME\n"
      "Plants a defect and succeeds when one of the seeds finds it.\n",
#else
      "\nRuns the supervisor in simulated time, one life per seed. A failing seed is printed;\n"
      "run it again with --seeds N..N --trace.\n"
      "--reach prints what was reached, and fails where something never was.\n",
#endif
      stderr);
  return 2;
}

bool parse_number(std::string_view text, std::uint64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

bool parse_seeds(std::string_view text, Options& options) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) {
    return parse_number(text, options.first) && parse_number(text, options.last);
  }
  return parse_number(text.substr(0, dots), options.first) &&
         parse_number(text.substr(dots + 2), options.last) && options.first <= options.last;
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--trace") {
      options.trace = true;
      continue;
    }
    if (name == "--reach") {
      options.reach = true;
      continue;
    }
    if (i + 1 >= argc) return false;
    const std::string_view value = argv[++i];
    if (name == "--seeds") {
      if (!parse_seeds(value, options)) return false;
    } else if (name == "--steps") {
      if (!parse_number(value, options.steps)) return false;
    } else if (name == "--mutation") {
      options.mutation = value;
    } else {
      return false;
    }
  }
  return true;
}

// Whether all that is expected was reached.
bool print_reach(const std::map<std::string, std::uint64_t>& reached) {
  for (const auto& [what, times] : reached) {
    std::printf("%12" PRIu64 " %s\n", times, what.c_str());
  }
  bool all = true;
  for (const std::string& what : berth::sim::expected_reach()) {
    if (reached.contains(what)) continue;
    all = false;
    std::printf("never reached: %s\n", what.c_str());
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) return usage();
#ifdef BERTH_MUTATIONS
  if (!berth::sim::plant(options.mutation)) return usage();
#else
  if (!options.mutation.empty()) return usage();
#endif

  std::size_t loads = 0;
  std::size_t requests = 0;
  std::map<std::string, std::uint64_t> reached;
  for (std::uint64_t seed = options.first; seed <= options.last; ++seed) {
    berth::sim::Scenario scenario(seed, options.steps, options.trace);
    const berth::sim::ScenarioResult result = scenario.run();
    loads += result.loads;
    requests += result.requests;
    for (const auto& [what, times] : result.reached) reached[what] += times;
    if (seed == options.first && result.violation.empty()) {
      berth::sim::Scenario again(seed, options.steps, false);
      if (again.run().fingerprint != result.fingerprint) {
        std::printf("seed %" PRIu64 " does not repeat\n", seed);
        return EXIT_FAILURE;
      }
    }
    if (result.violation.empty()) continue;
    std::printf("seed %" PRIu64 ": %s\n", seed, result.violation.c_str());
#ifdef BERTH_MUTATIONS
    std::printf("found %s\n", options.mutation.c_str());
    return EXIT_SUCCESS;
#else
    std::printf("run it again: berth_sim --seeds %" PRIu64 "..%" PRIu64 " --steps %" PRIu64
                " --trace\n",
                seed, seed, options.steps);
    return EXIT_FAILURE;
#endif
  }
  std::printf("%" PRIu64 " seeds of %" PRIu64
              " steps: %zu requests, %zu workers, no invariant was hurt\n",
              options.last - options.first + 1, options.steps, requests, loads);
  if (options.reach && !print_reach(reached)) return EXIT_FAILURE;
#ifdef BERTH_MUTATIONS
  return options.mutation == "none" ? EXIT_SUCCESS : EXIT_FAILURE;
#else
  return EXIT_SUCCESS;
#endif
}
