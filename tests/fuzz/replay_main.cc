// Runs a fuzz target without libFuzzer: every seed of a directory, then random changes of them for
// a few seconds. A failure ends the program; --seed with the printed number repeats the run.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t kLongest = 1U << 20U;

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

std::vector<std::string> read_seeds(const std::string& directory) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> seeds;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return seeds;
}

// Changes an input a few times: bytes, numbers at the edge of their range, cuts, copies.
class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::string next(const std::vector<std::string>& seeds) {
    std::string input = seeds[below(seeds.size())];
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) change(input, seeds);
    if (input.size() > kLongest) input.resize(kLongest);
    return input;
  }

 private:
  std::size_t below(std::size_t bound) {
    return bound == 0 ? 0 : static_cast<std::size_t>(random_() % bound);
  }

  void change(std::string& input, const std::vector<std::string>& seeds) {
    const std::size_t at = below(input.size());
    switch (below(7)) {
      case 0:
        if (!input.empty()) input[at] = static_cast<char>(below(256));
        break;
      case 1:
        if (!input.empty()) input[at] = static_cast<char>(input[at] ^ (1 << below(8)));
        break;
      case 2:
        write_number(input, at);
        break;
      case 3:
        input.resize(at);
        break;
      case 4:
        input.insert(at, input.substr(below(input.size()), below(64)));
        break;
      case 5:
        input.erase(at, below(32));
        break;
      default: {
        const std::string& other = seeds[below(seeds.size())];
        input = input.substr(0, at) + other.substr(below(other.size()));
      }
    }
  }

  void write_number(std::string& input, std::size_t at) {
    constexpr std::array<std::uint64_t, 12> kEdges = {0,
                                                      1,
                                                      0x7F,
                                                      0xFF,
                                                      0xFFFF,
                                                      0x7FFFFFFF,
                                                      0xFFFFFFFF,
                                                      0x100000000,
                                                      0x7FFFFFFFFFFFFFFF,
                                                      0x8000000000000000,
                                                      0xFFFFFFFFFFFFFFE0,
                                                      0xFFFFFFFFFFFFFFFF};
    const std::uint64_t number = kEdges.at(below(kEdges.size())) + below(3);
    const std::size_t width = std::size_t{1} << below(4);
    for (std::size_t i = 0; i < width && at + i < input.size(); ++i) {
      input[at + i] = static_cast<char>(number >> (8 * i));
    }
  }

  std::mt19937_64 random_;
};

}  // namespace

int main(int argc, char** argv) {
  std::string directory;
  std::uint64_t seed = (std::uint64_t{std::random_device{}()} << 32U) | std::random_device{}();
  std::chrono::milliseconds time(3'000);
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--seed" && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (argument == "--seconds" && i + 1 < argc) {
      time = std::chrono::seconds(std::strtoll(argv[++i], nullptr, 10));
    } else {
      directory = argument;
    }
  }
  const auto seeds = read_seeds(directory);
  if (seeds.empty()) {
    std::fprintf(stderr, "%s has no seeds; usage: %s DIRECTORY [--seed N] [--seconds N]\n",
                 directory.c_str(), argv[0]);
    return 2;
  }
  for (const std::string& input : seeds) run(input);

  std::printf("%zu seeds are fine; changing them with --seed %llu\n", seeds.size(),
              static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  Mutator mutator(seed);
  std::uint64_t runs = 0;
  const auto end = std::chrono::steady_clock::now() + time;
  do {
    for (int i = 0; i < 100; ++i, ++runs) run(mutator.next(seeds));
  } while (std::chrono::steady_clock::now() < end);
  std::printf("%llu changed inputs are fine\n", static_cast<unsigned long long>(runs));
  return 0;
}
