// What the cost model says of a model, beside what libllama reports and what the worker's process
// has: for every kind of model that the generator makes (M4, M5). The table that it prints is that
// of docs/memory.md.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "common/gguf/gguf.h"
#include "supervisor/core/memory/cost_model.h"
#include "supervisor/core/memory/model_shape.h"
#include "tests/integration/worker/cost_cases.h"
#include "tests/integration/worker/worker_process.h"
#include "tests/models/adapter.h"
#include "tests/models/draft_pair.h"
#include "tests/models/random_model.h"

namespace berth::worker {
namespace {

using core::Charge;
using core::ModelShape;
using core::ServeShape;

constexpr double kMiB = 1024.0 * 1024.0;
constexpr std::uint64_t kTolerated = 64ULL << 20;

// One line of the table; bytes.
struct Row {
  std::string name;
  std::uint64_t weights = 0, weights_said = 0;
  std::uint64_t kv = 0, kv_said = 0;
  std::uint64_t working = 0, working_said = 0;
  std::uint64_t overhead = 0;
  std::uint64_t total = 0, measured = 0;
};
std::vector<Row>& rows() {
  static std::vector<Row> all;
  return all;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// "RssAnon:     123 kB"
std::uint64_t status_bytes(const std::string& status, std::string_view key) {
  const auto at = status.find(key);
  if (at == std::string::npos) return 0;
  return std::stoull(status.substr(at + key.size())) * 1024;
}

// Resident bytes of mappings of files whose names end so.
std::uint64_t resident_of_models(pid_t pid) {
  std::istringstream maps(read_file("/proc/" + std::to_string(pid) + "/smaps"));
  std::uint64_t bytes = 0;
  bool of_model = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ') && line.find(':') > line.find(' ')) {
      of_model = line.ends_with(".gguf");
    } else if (of_model && line.starts_with("Rss:")) {
      bytes += std::stoull(line.substr(4)) * 1024;
    }
  }
  return bytes;
}

class Cost : public testing::TestWithParam<CostCase> {
 protected:
  Cost() {
    std::string pattern = "/tmp/berth-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~Cost() override { std::filesystem::remove_all(directory_); }

  static void TearDownTestSuite() {
    const auto mib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / kMiB; };
    std::printf("| model | weights | KV | working | overhead | total | measured | off |\n");
    std::printf("|---|---|---|---|---|---|---|---|\n");
    for (const Row& row : rows()) {
      std::printf("| %s | %.1f (%.1f) | %.2f (%.2f) | %.1f (%.1f) | %.1f | %.1f | %.1f | %+.1f |\n",
                  row.name.c_str(), mib(row.weights), mib(row.weights_said), mib(row.kv),
                  mib(row.kv_said), mib(row.working), mib(row.working_said), mib(row.overhead),
                  mib(row.total), mib(row.measured), mib(row.total) - mib(row.measured));
    }
  }

  // Writes the files of the case, and reads their shapes.
  void write(const CostCase& one) {
    const std::string path = directory_ + "/model.gguf";
    if (one.draft) {
      draft_path_ = directory_ + "/draft.gguf";
      ASSERT_TRUE(test_models::write_draft_pair(one.model, path, draft_path_).has_value());
      model_path_ = path;
      draft_ = shape_of(draft_path_);
    } else {
      const auto files = test_models::write_model(one.model, path);
      ASSERT_TRUE(files.has_value()) << files.error().message;
      model_path_ = files->front();
    }
    shape_ = shape_of(model_path_);
    if (!one.adapter) return;
    adapter_path_ = directory_ + "/adapter.gguf";
    auto adapter = test_models::make_adapter(one.model, {.rank = 64});
    ASSERT_TRUE(adapter.has_value());
    ASSERT_TRUE(test_models::write_file(adapter_path_, adapter->bytes()).has_value());
    const auto read = gguf::read_whole_model(adapter_path_);
    ASSERT_TRUE(read.has_value()) << read.error().message;
    const auto shape = core::adapter_shape(*read);
    ASSERT_TRUE(shape.has_value());
    adapters_.push_back(*shape);
  }

  static ModelShape shape_of(const std::string& path) {
    const auto read = gguf::read_whole_model(path);
    EXPECT_TRUE(read.has_value()) << read.error().message;
    if (!read) return {};
    const auto shape = core::model_shape(*read);
    EXPECT_TRUE(shape.has_value()) << shape.error().message;
    return shape.value_or(ModelShape{});
  }

  [[nodiscard]] std::vector<std::string> arguments(const CostCase& one) const {
    std::vector<std::string> all = {"--prove-micro-batch",
                                    "--context",
                                    std::to_string(one.serve.window),
                                    "--sequences",
                                    std::to_string(one.serve.sequences),
                                    "--batch",
                                    std::to_string(one.serve.batch),
                                    "--kv-type",
                                    std::string(one.kv_type)};
    if (one.serve.flash_attention == core::FlashAttention::kOff) {
      all.insert(all.end(), {"--flash-attention", "off"});
    }
    if (one.draft) all.insert(all.end(), {"--draft", draft_path_});
    if (one.adapter) all.insert(all.end(), {"--adapter", adapter_path_});
    return all;
  }

  std::string directory_;
  std::string model_path_;
  std::string draft_path_;
  std::string adapter_path_;
  ModelShape shape_;
  std::optional<ModelShape> draft_;
  std::vector<ModelShape> adapters_;
};

TEST_P(Cost, M4_M5_PredictionIsWhatLibllamaReportsAndTheProcessHas) {
  const CostCase& one = GetParam();
  ASSERT_NO_FATAL_FAILURE(write(one));
  EXPECT_FALSE(shape_.guessed);
  ServeShape serve = one.serve;
  serve.kv_type = core::kv_type_from_name(one.kv_type).value();
  const auto cost = core::model_cost(shape_, serve, draft_ ? &*draft_ : nullptr, adapters_);
  const Charge charge = core::charge_of(cost, {});

  WorkerProcess worker({model_path_, arguments(one)});
  const auto event = worker.wait_loaded();
  ASSERT_TRUE(event && event->has_ready()) << worker.log();

  Row row;
  row.name = one.name;
  row.weights = charge.weights.bytes[0];
  row.kv = charge.kv.bytes[0];
  row.working = charge.working.bytes[0];
  row.overhead = charge.overhead.bytes[0];
  row.total = charge.total()[0];
  std::uint64_t mapped = 0;
  for (const auto& use : event->ready().memory()) {
    EXPECT_EQ(use.domain(), "host");
    row.weights_said += use.weights_bytes();
    row.kv_said += use.kv_bytes();
    row.working_said += use.working_bytes();
    mapped += use.mapped_bytes();
  }
  // Matrices that the processor backend copied for itself stay mapped; the kernel may drop those
  // pages at any time, so they are not counted.
  const auto status = read_file("/proc/" + std::to_string(worker.pid()) + "/status");
  const std::uint64_t of_files = resident_of_models(worker.pid());
  row.measured = status_bytes(status, "RssAnon:") + status_bytes(status, "RssFile:") +
                 status_bytes(status, "RssShmem:") - (of_files - std::min(of_files, mapped));
  rows().push_back(row);

  const auto number = [](std::uint64_t bytes) { return static_cast<double>(bytes); };
  const std::uint64_t said = row.weights_said + row.kv_said;
  EXPECT_NEAR(number(row.weights + row.kv), number(said), 0.02 * number(said));
  EXPECT_NEAR(number(row.working), number(row.working_said),
              std::max(2 * kMiB, 0.1 * number(row.working_said)));
  EXPECT_NEAR(number(row.total), number(row.measured),
              std::max(number(kTolerated), 0.1 * number(row.measured)));
}

std::string case_name(const testing::TestParamInfo<CostCase>& info) {
  return std::string(info.param.name);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Cost, testing::ValuesIn(cost_cases()), case_name);

}  // namespace
}  // namespace berth::worker
