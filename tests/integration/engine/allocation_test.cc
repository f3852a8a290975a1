// Sampling of a token takes no memory from the heap, neither ours nor libllama's: at thousands of
// tokens per second over many lanes that would be noticed. Every operator new of this process is
// counted, libllama's too.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <random>
#include <vector>

#include "tests/integration/engine/vocabulary_model.h"
#include "worker/engine/llama_sampler.h"

namespace {

std::atomic<std::size_t> allocations{0};
std::atomic<bool> next_fails{false};

void* counted(std::size_t size) {
  ++allocations;
  if (next_fails.exchange(false)) throw std::bad_alloc();
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) {
  return counted(size);
}
void* operator new[](std::size_t size) {
  return counted(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}

namespace berth::worker {
namespace {

std::size_t allocations_of(const SamplingSettings& settings) {
  constexpr std::uint32_t kSize = 3000;
  static const VocabularyModel model(test_models::Tokenizer::kBpe, kSize);
  const auto made = LlamaSampler::make(model.get(), settings);
  EXPECT_TRUE(made);
  std::mt19937 random(1);
  std::normal_distribution<float> distribution(0, 2);
  std::vector<float> logits(kSize);
  std::vector<llama_token_data> scratch;
  std::size_t before = 0;
  constexpr int kWarm = 100;  // until buffers have their size
  for (int step = 0; step < 2 * kWarm; ++step) {
    for (auto& logit : logits) logit = distribution(random);
    if (step == kWarm) before = allocations;
    EXPECT_TRUE(static_cast<LlamaSampler&>(**made).choose(logits, scratch));
  }
  return allocations - before;
}

TEST(Allocations, CountsThemAndLibllamasToo) {
  const auto before = allocations.load();
  const auto vector = std::make_unique<std::vector<int>>(10);
  EXPECT_EQ(allocations - before, 2U);
  EXPECT_EQ(vector->size(), 10U);
  SamplingSettings settings;
  settings.typical_p = 0.5F;  // sorts a copy, within libllama
  EXPECT_GT(allocations_of(settings), 0U);
}

TEST(Allocations, NoneForAToken) {
  SamplingSettings settings;
  EXPECT_EQ(allocations_of(settings), 0U);
  settings.logit_bias = {{1, 2.0F}, {5, -3.0F}};
  settings.ignore_eos = true;
  settings.xtc_probability = 0.5F;
  settings.dynamic_temperature_range = 0.2F;
  settings.top_logprobs = 0;
  EXPECT_EQ(allocations_of(settings), 0U);
  settings.temperature = 0;
  EXPECT_EQ(allocations_of(settings), 0U);
}

TEST(Allocations, ThatFailAreNoFaultOfTheClient) {
  constexpr std::uint32_t kSize = 3000;
  static const VocabularyModel model(test_models::Tokenizer::kBpe, kSize);
  SamplingSettings settings;
  settings.grammar = "root ::= .*";
  next_fails = true;
  const auto none = LlamaSampler::make(model.get(), settings);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().reason, Reason::kInternal);
  const auto made = LlamaSampler::make(model.get(), settings);
  ASSERT_TRUE(made);
  std::vector<float> logits(kSize, 1);
  std::vector<llama_token_data> scratch;
  next_fails = true;
  const auto chosen = static_cast<LlamaSampler&>(**made).choose(logits, scratch);
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().reason, Reason::kInternal);
}

}  // namespace
}  // namespace berth::worker
