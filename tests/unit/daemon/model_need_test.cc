#include "supervisor/model_need.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace berth {
namespace {

using core::Basis;
using core::DomainBytes;
using core::DomainIndex;
using core::WindowBound;
using residency::MemoryNeed;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint64_t kMiB = 1ULL << 20;
constexpr std::uint64_t kGiB = 1ULL << 30;
constexpr SteadyTime kNow{seconds(1000)};
constexpr DomainIndex kFirst = 1;
constexpr DomainIndex kSecond = 2;

// 16 layers of 256 MiB, 4 KiB a cell each: 64 KiB a token in all, 2 GiB at 32,768.
core::ModelShape some_shape() {
  core::ModelShape shape;
  shape.architecture = "llama";
  shape.layers.assign(16, {.weights = 256 * kMiB,
                           .heads = 16,
                           .keys = 1024,
                           .values = 1024,
                           .feed_forward = 4096,
                           .gated = true});
  shape.input_weights = 100 * kMiB;
  shape.output_weights = 100 * kMiB;
  shape.embedding = 2048;
  shape.vocabulary = 32'000;
  shape.declared_context = 131'072;
  return shape;
}

class Needs : public ::testing::Test {
 protected:
  Needs() {
    config_->memory.auto_context_max = 32'768;
    config_->memory.auto_share = 0.5;
    table_.domains = {
        {.id = "host", .device = "", .total = 64 * kGiB, .budget = 38 * kGiB},
        {.id = "GPU-1111", .device = "CUDA0", .total = 24 * kGiB, .budget = 22 * kGiB},
        {.id = "GPU-2222", .device = "CUDA1", .total = 12 * kGiB, .budget = 11 * kGiB}};
    table_.by_device = {{"CUDA0", 1}, {"CUDA1", 2}, {"Vulkan0", 1}};
    auto parts = std::make_shared<catalog::ModelParts>();
    parts->model = some_shape();
    model_.name = "m";
    model_.path = "/m.gguf";
    model_.parts = std::move(parts);
    model_.declared_context = 131'072;
    model_.served_context = 32'768;
    model_.file_bytes = 4 * kGiB;
  }

  [[nodiscard]] core::Snapshot snapshot() const {
    core::Snapshot made;
    made.now = kNow;
    made.domains = table_.domains;
    made.entries = entries_;
    return made;
  }
  MemoryNeed ask() {
    core::Need need;
    need.model = model_.name;
    return needs_.need(model_, snapshot(), need);
  }
  void resident(const std::string& model, DomainBytes charge, bool pinned = false) {
    core::Entry entry;
    entry.id = Uuid::make(WallTime(seconds(1)), 2, entries_.size() + 1);
    entry.model = model;
    entry.state = core::EntryState::kReady;
    entry.charge = charge;
    entry.pinned = pinned;
    entries_.push_back(std::move(entry));
  }
  void budget(DomainIndex domain, std::uint64_t bytes) { table_.domains[domain].budget = bytes; }
  static DomainBytes in_host(std::uint64_t bytes) {
    return DomainBytes::in(core::kHostDomain, bytes);
  }

  std::shared_ptr<catalog::Config> config_ = std::make_shared<catalog::Config>();
  core::DomainTable table_;
  std::vector<core::Entry> entries_;
  catalog::Model model_;
  std::map<std::string, core::MeasuredLoad> measured_;
  std::optional<core::Provenance> provenance_;
  ModelNeeds needs_{{.table = [this]() -> const core::DomainTable& { return table_; },
                     .config = [this] { return config_; },
                     .measured = [this](const std::string& key) -> const core::MeasuredLoad* {
                       const auto known = measured_.find(key);
                       return known == measured_.end() ? nullptr : &known->second;
                     },
                     .provenance =
                         [](const catalog::Model& model) {
                           core::Provenance provenance;
                           provenance.window = model.served_context;
                           provenance.sequences = model.settings.sequences;
                           return provenance;
                         },
                     .cores = 4,
                     .repacks = true}};
};

// --- windows

TEST_F(Needs, M6_WhatDecidedTheWindowIsSaid) {
  MemoryNeed need = ask();
  EXPECT_EQ(need.window, 32'768U);
  EXPECT_EQ(need.bound, WindowBound::kAutoMax);
  model_.declared_context = 8192;
  need = ask();
  EXPECT_EQ(need.window, 8192U);
  EXPECT_EQ(need.bound, WindowBound::kDeclared);
  model_.settings.context = 100'000;
  need = ask();
  EXPECT_EQ(need.window, 100'000U);
  EXPECT_EQ(need.bound, WindowBound::kConfigured);
}

TEST_F(Needs, M6_ASmallBudgetMakesTheWindowSmaller) {
  budget(core::kHostDomain, 6 * kGiB);
  const MemoryNeed need = ask();
  EXPECT_EQ(need.bound, WindowBound::kBudget);
  EXPECT_GT(need.window, 4096U);
  EXPECT_LT(need.window, 32'768U);
  ASSERT_THAT(need.options, SizeIs(1));
  EXPECT_LE(need.options[0].bytes[core::kHostDomain], 6 * kGiB);
  EXPECT_GT(need.options[0].bytes[core::kHostDomain], 6 * kGiB - 64 * kMiB) << "and no smaller";
}

TEST_F(Needs, M6_AnotherModelLeavesItAShare) {
  budget(core::kHostDomain, 11 * kGiB);
  EXPECT_EQ(ask().window, 32'768U);
  resident("other", in_host(kGiB));
  MemoryNeed need = ask();
  EXPECT_EQ(need.bound, WindowBound::kShare);
  EXPECT_LE(need.options[0].bytes[core::kHostDomain], 11 * kGiB / 2);

  entries_[0].state = core::EntryState::kLeaving;
  EXPECT_EQ(ask().window, 32'768U) << "one that goes is no company";
  entries_[0].state = core::EntryState::kReady;
  entries_[0].model = "m";
  EXPECT_EQ(ask().window, 32'768U) << "nor is the model itself";

  entries_.clear();
  core::Snapshot waiting = snapshot();
  waiting.holds = {{.model = "other", .bytes = in_host(kGiB), .until = kNow + seconds(1)}};
  core::Need asked;
  asked.model = "m";
  EXPECT_EQ(needs_.need(model_, waiting, asked).bound, WindowBound::kShare);
}

TEST_F(Needs, M6_OneThatAnotherWentForLeavesItAShare) {
  budget(core::kHostDomain, 11 * kGiB);
  core::Need asked;
  asked.model = "m";
  asked.company = true;
  EXPECT_EQ(needs_.need(model_, snapshot(), asked).bound, WindowBound::kShare);
  asked.company = false;
  EXPECT_EQ(needs_.need(model_, snapshot(), asked).window, 32'768U);
}

TEST_F(Needs, M6_AShareNeverMakesItSmallerThanTheFloor) {
  budget(core::kHostDomain, 6 * kGiB);
  resident("other", in_host(kGiB));
  const MemoryNeed need = ask();
  EXPECT_EQ(need.window, 4096U);
  EXPECT_EQ(need.bound, WindowBound::kFloor);
}

// Else it would wait for them, or be refused, for the sake of a window that nobody asked for.
TEST_F(Needs, M6_AWindowIsNotLargerThanPinnedModelsAndOtherProgramsLeaveRoomFor) {
  table_.domains[0].total = 12 * kGiB;
  budget(core::kHostDomain, 11 * kGiB);
  config_->memory.auto_share = 1;
  resident("other", in_host(5 * kGiB), true);
  const MemoryNeed beside = ask();
  EXPECT_LT(beside.window, 32'768U);
  EXPECT_GT(beside.window, 4096U);
  EXPECT_LE(beside.options[0].bytes[core::kHostDomain], 6 * kGiB);

  entries_.clear();
  table_.domains[0].foreign = 5 * kGiB;
  const MemoryNeed apart = ask();
  EXPECT_LT(apart.window, 32'768U);
  EXPECT_LE(apart.options[0].bytes[core::kHostDomain], table_.domains[0].limit());
  table_.domains[0].foreign -= 20 * kMiB;
  EXPECT_EQ(ask().window, apart.window) << "a little more or less is no other window";
}

TEST_F(Needs, M6_FollowsTheSettingsOfNow) {
  EXPECT_EQ(ask().window, 32'768U);
  config_ = std::make_shared<catalog::Config>(*config_);
  config_->memory.auto_context_max = 16'384;
  EXPECT_EQ(ask().window, 16'384U);
  const std::uint64_t before = ask().options[0].bytes[core::kHostDomain];
  model_.settings.kv_type = "q8_0";
  EXPECT_LT(ask().options[0].bytes[core::kHostDomain], before);
}

// --- charges

TEST_F(Needs, M4_IsWhatTheCostModelSaysOfTheWorkersSettings) {
  auto parts = std::make_shared<catalog::ModelParts>(*model_.parts);
  parts->draft = some_shape();
  parts->adapters = {some_shape()};
  model_.parts = parts;
  model_.settings.draft = "/d.gguf";
  model_.settings.sequences = 64;
  model_.settings.threads = 3;
  model_.settings.kv_type = "q8_0";
  model_.settings.flash_attention = "on";
  model_.settings.context = 8192;
  core::ServeShape serve;
  serve.window = 8192;
  serve.sequences = 64;
  serve.batch = 64 * 9;  // as the worker takes it: each sequence with its draft
  serve.kv_type = 8;
  serve.flash_attention = core::FlashAttention::kOn;
  serve.draft_tokens = 8;
  serve.threads = 3;
  const core::ModelCost cost =
      core::model_cost(parts->model, serve, &*parts->draft, parts->adapters);
  EXPECT_THAT(ask().options,
              ElementsAre(core::PlacementOption{.bytes = core::charge_of(cost, {}).total()}));
  EXPECT_EQ(needs_.terms(model_, 8192, {}), core::charge_of(cost, {}));
}

TEST_F(Needs, M4_TheTermsAreThoseOfEachOption) {
  model_.settings.devices = {"CUDA0", "CUDA1"};
  const MemoryNeed need = ask();
  ASSERT_GT(need.options.size(), 2U);
  for (const core::PlacementOption& option : need.options) {
    EXPECT_EQ(needs_.terms(model_, need.window, option.placement).total(), option.bytes);
  }
}

TEST_F(Needs, M4_AHeaderThatDoesNotTellIsGuessed) {
  model_.parts = nullptr;
  const MemoryNeed need = ask();
  EXPECT_EQ(need.window, 0U);
  EXPECT_EQ(need.bound, std::nullopt);
  ASSERT_THAT(need.options, SizeIs(1));
  EXPECT_GT(need.options[0].bytes[core::kHostDomain], model_.file_bytes / 10 * 11);
  const core::Charge terms = needs_.terms(model_, 0, {});
  EXPECT_EQ(terms.total(), need.options[0].bytes);
  EXPECT_GT(terms.error[core::kHostDomain], kGiB);

  model_.settings.devices = {"CUDA0", "CUDA1"};
  for (const core::PlacementOption& option : ask().options) {
    ASSERT_THAT(option.placement.shares, SizeIs(1));
    EXPECT_GT(option.bytes[option.placement.shares[0].device], model_.file_bytes);
    EXPECT_LT(option.bytes[core::kHostDomain], kGiB);
  }
  model_.settings.gpu_layers = 7;
  for (const core::PlacementOption& option : ask().options) {
    EXPECT_GT(option.bytes[core::kHostDomain], model_.file_bytes) << "how many stay is not known";
  }
}

TEST_F(Needs, M5_WhatWasMeasuredIsTaken) {
  const MemoryNeed before = ask();
  const std::string key = needs_.measured_key(model_, before.window, {});
  core::MeasuredDomain row;
  row.domain = "host";
  row.weights = 3 * kGiB;
  row.kv = kGiB;
  row.working = kGiB / 2;
  measured_[key] = {.loads = 1, .domains = {row}};
  const MemoryNeed after = ask();
  EXPECT_EQ(after.window, before.window);
  const core::Charge terms = needs_.terms(model_, after.window, {});
  EXPECT_EQ(after.options[0].bytes, terms.total());
  EXPECT_EQ(terms.weights.bytes[core::kHostDomain], 3 * kGiB);
  EXPECT_EQ(terms.weights.basis, Basis::kMeasured);
  EXPECT_LT(after.options[0].bytes[core::kHostDomain], before.options[0].bytes[core::kHostDomain]);
  EXPECT_NE(needs_.measured_key(model_, 4096, {}), key) << "another window is another load";
  EXPECT_NE(needs_.measured_key(model_, before.window, {{{kFirst, 17}}}), key);
}

// Else a window that fills the budget by its prediction would be refused for ever.
TEST_F(Needs, M5_M6_AWindowThatTookMoreThanPredictedIsMadeSmaller) {
  budget(core::kHostDomain, 6 * kGiB);
  const MemoryNeed before = ask();
  ASSERT_EQ(before.bound, WindowBound::kBudget);
  const core::Charge terms = needs_.terms(model_, before.window, {});
  core::MeasuredDomain row;
  row.domain = "host";
  row.weights = terms.weights.bytes[core::kHostDomain];
  row.kv = terms.kv.bytes[core::kHostDomain];
  row.working = terms.working.bytes[core::kHostDomain] + 200 * kMiB;
  measured_[needs_.measured_key(model_, before.window, {})] = {.loads = 1, .domains = {row}};
  const MemoryNeed after = ask();
  EXPECT_LT(after.window, before.window);
  EXPECT_GT(after.window, 4096U);
  EXPECT_LE(after.options[0].bytes[core::kHostDomain], 6 * kGiB - 200 * kMiB);
  EXPECT_EQ(ask().window, after.window);
}

// --- devices

TEST_F(Needs, M17_DevicesAreNamedByLibllamasNameOrByTheirId) {
  for (const char* const name : {"CUDA1", "GPU-2222"}) {
    model_.settings.devices = {name};
    const MemoryNeed need = ask();
    EXPECT_THAT(need.missing_devices, IsEmpty());
    ASSERT_THAT(need.options, SizeIs(1));
    EXPECT_EQ(need.options[0].placement, (core::Placement{{{kSecond, 17}}})) << name;
  }
  model_.settings.devices = {"GPU-1111", "CUDA0", "Vulkan0"};
  EXPECT_THAT(ask().options, SizeIs(1)) << "one device with three names";
}

TEST_F(Needs, M17_SomeLayersOnADevice) {
  model_.settings.devices = {"CUDA0"};
  model_.settings.gpu_layers = 5;
  const MemoryNeed need = ask();
  ASSERT_THAT(need.options, SizeIs(1));
  EXPECT_EQ(need.options[0].placement, (core::Placement{{{kFirst, 5}}}));
  EXPECT_GT(need.options[0].bytes[core::kHostDomain], 12 * 256 * kMiB);
  model_.settings.gpu_layers = 0;
  EXPECT_EQ(ask().options[0].placement, core::Placement());
}

TEST_F(Needs, M17_WhatFitsNoDeviceIsSplit) {
  budget(kFirst, 4 * kGiB);
  budget(kSecond, 4 * kGiB);
  model_.settings.devices = {"CUDA0", "CUDA1"};
  const MemoryNeed need = ask();
  EXPECT_TRUE(std::ranges::any_of(need.options, [&](const core::PlacementOption& option) {
    return option.split() && option.bytes[kFirst] <= 4 * kGiB && option.bytes[kSecond] <= 4 * kGiB;
  }));
  EXPECT_GT(need.window, 4096U);
}

TEST_F(Needs, M17_M14_ADeviceThatIsNotThereIsMissingAndNeverTheProcessor) {
  model_.settings.devices = {"CUDA0", "GPU-9999", "host"};
  MemoryNeed need = ask();
  EXPECT_THAT(need.missing_devices, ElementsAre("GPU-9999", "host"));
  EXPECT_THAT(need.options, IsEmpty());
  model_.settings.devices = {"CUDA0"};
  table_.domains[kFirst].lost = true;
  EXPECT_THAT(ask().missing_devices, ElementsAre("CUDA0"));
}

TEST_F(Needs, M17_AMissingDeviceIsMissedAlsoWhereNoLayerGoesThere) {
  model_.settings.devices = {"CUDA7"};
  model_.settings.gpu_layers = 0;
  const MemoryNeed need = ask();
  EXPECT_THAT(need.missing_devices, ElementsAre("CUDA7"));
  EXPECT_THAT(need.options, IsEmpty());
  model_.settings.devices = {"CUDA0"};
  EXPECT_THAT(ask().missing_devices, IsEmpty());
  EXPECT_FALSE(ask().options.empty());
}

TEST_F(Needs, M17_AMissingDeviceIsToldWithThoseThatAreThere) {
  residency::MemoryAccess access;
  access.domains = [this] { return table_.domains; };
  needs_.join(access);
  EXPECT_EQ(access.device_problem(model_), "");
  model_.settings.devices = {"CUDA7"};
  EXPECT_EQ(access.device_problem(model_),
            "Its device CUDA7 is not there; there are CUDA0 (GPU-1111), CUDA1 (GPU-2222) and "
            "Vulkan0 (GPU-1111). Correct `devices`, or connect what is missing.");
  model_.settings.devices = {"CUDA1", "GPU-1111", "CUDA7"};
  table_.domains[kFirst].lost = true;
  EXPECT_EQ(access.device_problem(model_),
            "Its devices GPU-1111 and CUDA7 are not there; there are CUDA1 (GPU-2222). Correct "
            "`devices`, or connect what is missing.");
  model_.settings.kind = catalog::Kind::kCommand;
  model_.settings.memory = {{"host", kGiB}, {"CUDA0", kGiB}};
  EXPECT_EQ(access.device_problem(model_),
            "Its device CUDA0 is not there; there are CUDA1 (GPU-2222). Correct `memory`, or "
            "connect what is missing.");
  table_.by_device.clear();
  EXPECT_THAT(access.device_problem(model_), testing::HasSubstr("and no other is known"));
}

// --- what would fit

TEST_F(Needs, M14_SaysWhatWouldFit) {
  budget(core::kHostDomain, 6 * kGiB);
  model_.settings.context = 131'072;
  const std::optional<WouldFit> fits = needs_.would_fit(model_, snapshot());
  ASSERT_TRUE(fits);
  EXPECT_EQ(fits->sequences, model_.settings.sequences);
  EXPECT_GT(fits->context, 4096U);
  EXPECT_LE(needs_.terms(model_, fits->context, {}).total()[core::kHostDomain], 6 * kGiB);
  EXPECT_GT(needs_.terms(model_, fits->context + 256, {}).total()[core::kHostDomain], 6 * kGiB);
  budget(core::kHostDomain, kGiB);
  EXPECT_EQ(needs_.would_fit(model_, snapshot()), std::nullopt);
}

// --- commands

class NeedsOfCommands : public Needs {
 protected:
  NeedsOfCommands() {
    model_.parts = nullptr;
    model_.settings.kind = catalog::Kind::kCommand;
  }
};

TEST_F(NeedsOfCommands, M4_WhatIsDeclaredIsCharged) {
  model_.settings.memory = {{"host", kGiB}, {"GPU-1111", 2 * kGiB}, {"CUDA1", 3 * kGiB}};
  const MemoryNeed need = ask();
  ASSERT_THAT(need.options, SizeIs(1));
  EXPECT_EQ(need.options[0].bytes,
            in_host(kGiB) + DomainBytes::in(kFirst, 2 * kGiB) + DomainBytes::in(kSecond, 3 * kGiB));
  EXPECT_EQ(needs_.terms(model_, 0, {}).overhead.basis, Basis::kDeclared);
  model_.settings.memory["GPU-9999"] = kGiB;
  EXPECT_THAT(ask().missing_devices, ElementsAre("GPU-9999"));
}

TEST_F(NeedsOfCommands, M5_ElseWhatWasMeasured) {
  EXPECT_THAT(ask().options, IsEmpty()) << "nothing is known of it";
  EXPECT_EQ(needs_.terms(model_, 0, {}), core::Charge());
  core::MeasuredDomain host;
  host.domain = "host";
  host.process = 5 * kGiB;
  core::MeasuredDomain device;
  device.domain = "GPU-2222";
  device.at_least = kGiB;
  measured_[needs_.measured_key(model_, 0, {})] = {.loads = 1, .domains = {host, device}};
  const MemoryNeed need = ask();
  ASSERT_THAT(need.options, SizeIs(1));
  EXPECT_EQ(need.options[0].bytes, in_host(5 * kGiB) + DomainBytes::in(kSecond, kGiB));
  EXPECT_EQ(needs_.terms(model_, 0, {}).overhead.basis, Basis::kMeasured);
}

}  // namespace
}  // namespace berth
