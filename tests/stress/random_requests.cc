// Starts the real worker on small models and asks it whatever the protocol lets one ask, right and
// wrong, from several threads. See --help.

#include <stdlib.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>

#include "tests/stress/configurations.h"
#include "tests/stress/worker_run.h"

namespace berth::stress {
namespace {

struct Options {
  std::string configuration = "all";
  std::uint64_t seed = 0;
  std::uint64_t seconds = 60;
  std::uint64_t each = 0;
  std::uint64_t threads = 4;
  std::string heap_checks;
  std::string only;
  bool ambiguous = false;
};

// Of this process; goes with it.
class Directory {
 public:
  Directory() {
    std::string pattern = "/tmp/berth-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string problem_of_place(const std::string& text) {
  if (place_of(text, 0)) return {};
  return "must be THREAD.NUMBER, two numbers from 0, as in 3.1204";
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("--configuration", options.configuration, "One of them, or all in turn")
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "Of calls, in all")->capture_default_str();
  app.add_option("--each", options.each,
                 "Seconds of calls of one worker, then comes the next configuration; 0: each once");
  app.add_option("--seed", options.seed, "Gives the same calls again; 0: another one each time");
  app.add_option("--threads", options.threads, "Clients that call at the same time")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  app.add_option("--only", options.only,
                 "THREAD.NUMBER: this call again and again (of the id SEED.THREAD.NUMBER)")
      ->check(problem_of_place);
  app.add_option("--malloc-debug", options.heap_checks,
                 "A libc_malloc_debug.so.0 of the worker's C library: the heap is checked");
  app.add_flag("--ambiguous-grammars", options.ambiguous,
               "Also grammars that can be read in ever more ways as they nest");
}

std::vector<std::string> wrapper_of(const Options& options) {
  if (options.heap_checks.empty()) return {};
  return {"/usr/bin/env", "LD_PRELOAD=" + options.heap_checks, "MALLOC_CHECK_=3",
          "MALLOC_PERTURB_=165", "GLIBC_TUNABLES=glibc.malloc.check=3"};
}

struct Sum {
  std::uint64_t problems = 0;
  std::uint64_t deaths = 0;
  Counts counts;
};

// One configuration after the other, until the time is over. Whether no worker died.
void run_all(const std::vector<Configuration>& configurations, const Options& options, Sum& sum) {
  const auto each = options.each > 0
                        ? options.each
                        : std::max<std::uint64_t>(1, options.seconds / configurations.size());
  RunSettings settings;
  settings.threads = options.threads;
  settings.ambiguous_grammars = options.ambiguous;
  settings.wrapper = wrapper_of(options);
  settings.only = place_of(options.only, options.seed);
  settings.seconds = each;
  settings.seed = options.seed;
  std::uint64_t done = 0;
  for (std::size_t i = 0; done < options.seconds && sum.deaths == 0; ++i, done += each) {
    // A round has a seed of its own, which repeats it.
    settings.seed = options.seed + i / configurations.size();
    const auto& configuration = configurations[i % configurations.size()];
    std::printf("--configuration %s --seed %" PRIu64 " --threads %" PRIu64 " --seconds %" PRIu64
                "\n",
                configuration.name.c_str(), settings.seed, settings.threads, settings.seconds);
    std::fflush(stdout);
    const auto result = run_worker(configuration, settings);
    print_counts(result.counts);
    sum.problems += result.problems;
    sum.deaths += result.died ? 1 : 0;
    for (const auto& [kind, counted] : result.counts) sum.counts[kind].add(counted);
  }
}

int run(const Options& options) {
  const Directory directory;
  auto configurations = all_configurations(directory.path());
  if (!configurations) {
    std::fprintf(stderr, "%s\n", configurations.error().message.c_str());
    return EXIT_FAILURE;
  }
  if (options.configuration != "all") {
    std::erase_if(*configurations,
                  [&](const auto& made) { return made.name != options.configuration; });
  }
  if (configurations->empty()) {
    std::fprintf(stderr, "There is no configuration %s.\n", options.configuration.c_str());
    return 2;
  }
  Sum sum;
  run_all(*configurations, options, sum);
  std::printf("All:\n");
  print_counts(sum.counts);
  std::printf("seed %" PRIu64 ": %" PRIu64 " problems, %" PRIu64 " workers died\n", options.seed,
              sum.problems, sum.deaths);
  return sum.problems == 0 && sum.deaths == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace berth::stress

int main(int argc, char** argv) {
  berth::stress::Options options;
  CLI::App app(
      "Random requests against berth-worker. Fails when a worker dies, hangs, grows, or answers "
      "what it must not; says then which call it was and how to make it again.");
  berth::stress::add_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? EXIT_SUCCESS : 2;
  }
  if (options.seed == 0) options.seed = std::random_device{}();
  return berth::stress::run(options);
}
