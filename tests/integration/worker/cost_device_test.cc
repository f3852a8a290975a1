// What the cost model says of a model whose layers are on a device, beside what libllama reports
// there and in the host (M4); with the software Vulkan device.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "common/gguf/gguf.h"
#include "supervisor/core/memory/cost_model.h"
#include "tests/integration/worker/cost_cases.h"
#include "tests/integration/worker/software_device.h"
#include "tests/integration/worker/worker_process.h"
#include "tests/models/random_model.h"

namespace berth::worker {
namespace {

using core::DomainIndex;
using test_models::ModelOptions;
using test_models::TensorType;

constexpr double kMiB = 1024.0 * 1024.0;
constexpr DomainIndex kDevice = 1;

class CostOnDevice : public SoftwareDevice {
 protected:
  static void compare(const char* what, std::uint64_t predicted, std::uint64_t said, double share,
                      double least) {
    const auto number = [](std::uint64_t bytes) { return static_cast<double>(bytes); };
    std::printf("%-18s predicted %7.2f MiB, reported %7.2f MiB\n", what, number(predicted) / kMiB,
                number(said) / kMiB);
    EXPECT_NEAR(number(predicted), number(said), std::max(share * number(said), least)) << what;
  }

  // Loads the model with its last `layers` on the device.
  void check(const ModelOptions& options, std::uint32_t layers) const {
    const std::string path = directory_ + "/model.gguf";
    ASSERT_TRUE(test_models::write_model(options, path).has_value());
    const auto read = gguf::read_whole_model(path);
    ASSERT_TRUE(read.has_value());
    const auto shape = core::model_shape(*read);
    ASSERT_TRUE(shape.has_value());
    const auto charge = core::charge_of(core::model_cost(*shape, {}), {{{kDevice, layers}}});

    WorkerProcess worker({.model = path,
                          .arguments = {"--context", "4096", "--device", "Vulkan0",
                                        "--device-layers", std::to_string(layers)},
                          .wrapper = with_device()});
    const auto event = worker.wait_loaded();
    ASSERT_TRUE(event && event->has_ready()) << worker.log();
    EXPECT_EQ(event->ready().memory_size(), 2);
    for (const auto& use : event->ready().memory()) {
      const DomainIndex domain = use.domain() == "host" ? core::kHostDomain : kDevice;
      std::printf("%s, %u layers on the device: %s\n", options.architecture.c_str(), layers,
                  use.domain().c_str());
      compare("weights", charge.weights.bytes[domain], use.weights_bytes(), 0.02, 0.1 * kMiB);
      compare("KV", charge.kv.bytes[domain], use.kv_bytes(), 0.02, 0);
      compare("working", charge.working.bytes[domain], use.working_bytes(), 0.1, 12 * kMiB);
    }
  }
};

TEST_F(CostOnDevice, M4_AllLayers) {
  check(sized("llama", TensorType::kQ8_0), 9);
}

TEST_F(CostOnDevice, M4_SomeLayers) {
  check(sized("qwen3", TensorType::kF16), 4);
}

TEST_F(CostOnDevice, M4_ATiedOutputIsCopiedToTheDevice) {
  auto options = sized("qwen2", TensorType::kQ4_K);
  options.tied_output = true;
  check(options, 9);
}

TEST_F(CostOnDevice, M4_SlidingWindows) {
  check(sized("gemma3", TensorType::kF16), 9);
}

}  // namespace
}  // namespace berth::worker
