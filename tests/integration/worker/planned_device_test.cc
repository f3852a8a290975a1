// That a model is where the plan puts it, with the window of the plan: from the model's file over
// its need, the planner's answer and the worker's command line to what the worker reports (M4, M6,
// M17). With the software Vulkan device, which is listed twice where two are needed.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "supervisor/catalog/catalog.h"
#include "supervisor/core/memory/planner.h"
#include "supervisor/model_need.h"
#include "supervisor/worker_command.h"
#include "tests/integration/worker/cost_cases.h"
#include "tests/integration/worker/software_device.h"
#include "tests/integration/worker/worker_process.h"
#include "tests/models/draft_pair.h"
#include "tests/models/random_model.h"

namespace berth::worker {
namespace {

using core::DomainIndex;
using test_models::TensorType;

constexpr std::uint64_t kMiB = 1ULL << 20;
constexpr std::uint64_t kGiB = 1ULL << 30;

class PlannedOnDevice : public SoftwareDevice {
 protected:
  // The machine with two devices that have so much.
  void devices_with(std::uint64_t first, std::uint64_t second) {
    table_.domains = {
        {.id = "host", .device = "", .total = 16 * kGiB, .budget = 16 * kGiB},
        {.id = "Vulkan:a", .device = "Vulkan0", .total = 16 * kGiB, .budget = first},
        {.id = "Vulkan:b", .device = "Vulkan1", .total = 16 * kGiB, .budget = second}};
    table_.by_device = {{"Vulkan0", 1}, {"Vulkan1", 2}};
  }

  // The model of that file with these settings, as the catalogue finds it.
  void find_model(const std::string& settings) {
    const catalog::ConfigResult read =
        catalog::parse_config("[model.m]\npath = \"m.gguf\"\n" + settings, directory_ + "/c.toml");
    ASSERT_TRUE(read.config) << read.problems.front().to_string();
    config_ = std::make_shared<const catalog::Config>(*read.config);
    const auto found = catalog::scan(*config_).catalog.find("m");
    ASSERT_TRUE(found);
    model_ = *found;
    ASSERT_EQ(model_->problem, "");
    ASSERT_TRUE(model_->parts) << model_->parts_problem;
  }

  // What the planner admits on the machine, which is empty.
  residency::LaunchPlan plan() {
    core::Snapshot snapshot;
    snapshot.domains = table_.domains;
    core::Need need;
    need.model = model_->name;
    residency::MemoryNeed found = needs_.need(*model_, snapshot, need);
    need.options = found.options;
    const core::Decision decision = core::plan(snapshot, need);
    const auto* const fits = std::get_if<core::Fits>(&decision);
    EXPECT_NE(fits, nullptr) << core::decision_name(decision);
    if (fits == nullptr) return {};
    return {.at = fits->at,
            .window = found.window,
            .terms = needs_.terms(*model_, found.window, fits->at.placement)};
  }

  // Starts the worker as berthd does, and compares what it reports with what was planned.
  void start_and_compare(const residency::LaunchPlan& plan) {
    WorkerProcess worker(
        {.model = model_->path, .arguments = arguments(plan), .wrapper = with_two_devices()});
    const auto event = worker.wait_loaded();
    ASSERT_TRUE(event && event->has_ready()) << worker.log();
    const v1::Ready& ready = event->ready();
    EXPECT_EQ(ready.device_layers(), core::device_layers(plan.at.placement));
    EXPECT_EQ(ready.window(), plan.window);
    EXPECT_EQ(static_cast<std::size_t>(ready.devices_size()), plan.at.placement.shares.size());
    for (const v1::MemoryUse& use : ready.memory()) {
      const auto device = table_.by_device.find(use.domain());
      const DomainIndex domain = device == table_.by_device.end() ? 0 : device->second;
      near(use.domain() + " weights", plan.terms.weights.bytes[domain], use.weights_bytes(), 0.1);
      near(use.domain() + " KV", plan.terms.kv.bytes[domain], use.kv_bytes(), 0.1);
      // Within the error that the charge itself states: a device with few layers computes less.
      near(use.domain() + " working", plan.terms.working.bytes[domain], use.working_bytes(), 64);
    }
  }

  std::shared_ptr<const catalog::Model> model_;

 private:
  // Without what WorkerProcess adds itself.
  [[nodiscard]] std::vector<std::string> arguments(const residency::LaunchPlan& plan) const {
    constexpr std::array<std::string_view, 4> kOwn = {"--model", "--socket", "--instance",
                                                      "--notify-fd"};
    const WorkerPlace place = planned_place(*model_, plan, table_);
    std::vector<std::string> kept;
    const std::vector<std::string> all = worker_arguments("w", *model_, place, Uuid(), "s");
    for (std::size_t i = 1; i < all.size(); ++i) {
      if (std::ranges::find(kOwn, all[i]) != kOwn.end()) {
        ++i;
      } else if (all[i] != "--parent-stdin") {
        kept.push_back(all[i]);
      }
    }
    return kept;
  }

  static std::vector<std::string> with_two_devices() {
    std::vector<std::string> command = with_device();
    command.emplace_back("GGML_VK_VISIBLE_DEVICES=0,0");
    return command;
  }

  static void near(const std::string& what, std::uint64_t planned, std::uint64_t said,
                   double least_mib) {
    const auto mib = [](std::uint64_t bytes) {
      return static_cast<double>(bytes) / static_cast<double>(kMiB);
    };
    std::printf("%-16s planned %7.2f MiB, reported %7.2f MiB\n", what.c_str(), mib(planned),
                mib(said));
    EXPECT_NEAR(mib(planned), mib(said), std::max(0.02 * mib(said), least_mib)) << what;
  }

  core::DomainTable table_;
  std::shared_ptr<const catalog::Config> config_;
  ModelNeeds needs_{{.table = [this]() -> const core::DomainTable& { return table_; },
                     .config = [this] { return config_; },
                     .cores = 1,
                     .repacks = processor_repacks()}};
};

TEST_F(PlannedOnDevice, M17_SomeLayersAreThereAndTheOthersInTheHost) {
  ASSERT_TRUE(test_models::write_model(sized("qwen3", TensorType::kF16), directory_ + "/m.gguf"));
  devices_with(8 * kGiB, 8 * kGiB);
  find_model("devices = [\"Vulkan:a\"]\ngpu_layers = 3\n");
  const residency::LaunchPlan planned = plan();
  EXPECT_EQ(planned.at.placement, (core::Placement{{{1, 3}}}));
  EXPECT_EQ(planned.window, 32'768U);
  start_and_compare(planned);
}

TEST_F(PlannedOnDevice, M17_OneOfTwoDevicesIsTheOneWhereItFitsBest) {
  ASSERT_TRUE(test_models::write_model(sized("llama", TensorType::kF16), directory_ + "/m.gguf"));
  devices_with(8 * kGiB, 4 * kGiB);
  find_model("devices = [\"Vulkan0\", \"Vulkan1\"]\ncontext = 4096\n");
  const residency::LaunchPlan planned = plan();
  EXPECT_EQ(planned.at.placement, (core::Placement{{{2, 9}}}));
  start_and_compare(planned);
}

TEST_F(PlannedOnDevice, M17_WhatFitsNeitherIsSplitAsPlanned) {
  ASSERT_TRUE(test_models::write_model(sized("llama", TensorType::kF16), directory_ + "/m.gguf"));
  devices_with(500 * kMiB, 490 * kMiB);
  find_model("devices = [\"Vulkan0\", \"Vulkan1\"]\ncontext = 4096\n");
  const residency::LaunchPlan planned = plan();
  ASSERT_EQ(planned.at.placement.shares.size(), 2U);
  start_and_compare(planned);
}

TEST_F(PlannedOnDevice, M6_TheWindowIsTheLargestThatFits) {
  ASSERT_TRUE(test_models::write_model(sized("llama", TensorType::kF16), directory_ + "/m.gguf"));
  devices_with(640 * kMiB, 400 * kMiB);
  find_model("devices = [\"Vulkan0\"]\n");
  const residency::LaunchPlan planned = plan();
  EXPECT_GT(planned.window, 4096U);
  EXPECT_LT(planned.window, 32'768U);
  start_and_compare(planned);
}

TEST_F(PlannedOnDevice, M4_ADraftModelIsSplitAsTheModelIs) {
  test_models::ModelOptions options = sized("llama", TensorType::kF16);
  options.layers = 9;
  options.early_layers = 4;
  ASSERT_TRUE(
      test_models::write_draft_pair(options, directory_ + "/m.gguf", directory_ + "/d.gguf"));
  devices_with(585 * kMiB, 560 * kMiB);
  find_model("devices = [\"Vulkan0\", \"Vulkan1\"]\ncontext = 4096\ndraft = \"d.gguf\"\n");
  const residency::LaunchPlan planned = plan();
  ASSERT_EQ(planned.at.placement.shares.size(), 2U);
  start_and_compare(planned);
}

}  // namespace
}  // namespace berth::worker
