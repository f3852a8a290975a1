#include "supervisor/core/memory/model_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace berth::core {
namespace {

using gguf::Tensor;
using gguf::Value;
using gguf::WholeModel;

Tensor tensor(std::string name, std::uint64_t columns, std::uint64_t rows, std::uint32_t type = 1) {
  Tensor made;
  made.name = std::move(name);
  made.type = type;
  made.shape = {columns, rows, 1, 1};
  made.elements = columns * rows;
  made.bytes = gguf::type_bytes(type, made.elements);
  return made;
}

Value list(std::vector<double> numbers) {
  gguf::Array array;
  array.size = numbers.size();
  array.numbers = std::move(numbers);
  return array;
}

// Four layers, 512 wide, 8 heads with 2 of keys and values.
WholeModel model_of(const std::string& architecture,
                    const std::map<std::string, Value>& more = {}) {
  WholeModel model;
  model.summary.architecture = architecture;
  auto& keys = model.first.metadata;
  keys["general.architecture"] = architecture;
  const auto set = [&](const std::string& name, Value value) {
    keys[architecture + "." + name] = std::move(value);
  };
  set("block_count", std::uint64_t{4});
  set("embedding_length", std::uint64_t{512});
  set("feed_forward_length", std::uint64_t{1536});
  set("attention.head_count", std::uint64_t{8});
  set("attention.head_count_kv", std::uint64_t{2});
  for (const auto& [name, value] : more) set(name, value);
  model.tensors.push_back(tensor("token_embd.weight", 512, 1000));
  for (int layer = 0; layer < 4; ++layer) {
    model.tensors.push_back(tensor("blk." + std::to_string(layer) + ".attn_q.weight", 512, 512));
  }
  model.tensors.push_back(tensor("output_norm.weight", 512, 1, 0));
  model.tensors.push_back(tensor("output.weight", 512, 1000));
  return model;
}

ModelShape shape_of(const WholeModel& model) {
  const auto shape = model_shape(model);
  EXPECT_TRUE(shape.has_value()) << shape.error().message;
  return shape.value_or(ModelShape{});
}

std::string error_of(const WholeModel& model) {
  const auto shape = model_shape(model);
  EXPECT_FALSE(shape.has_value());
  return shape ? "" : shape.error().message;
}

std::vector<bool> windows_of(const ModelShape& shape) {
  std::vector<bool> windows;
  for (const LayerShape& layer : shape.layers) windows.push_back(layer.windowed);
  return windows;
}

std::vector<std::uint32_t> keys_of(const ModelShape& shape) {
  std::vector<std::uint32_t> keys;
  for (const LayerShape& layer : shape.layers) keys.push_back(layer.keys);
  return keys;
}

TEST(ModelShape, M4_WeightsAreSummedByLayerFromTheTensorTable) {
  const auto shape = shape_of(model_of("llama"));
  EXPECT_FALSE(shape.guessed);
  ASSERT_EQ(shape.layers.size(), 4U);
  EXPECT_EQ(shape.layers[3].weights, 512U * 512 * 2);
  EXPECT_EQ(shape.input_weights, 512U * 1000 * 2);
  EXPECT_EQ(shape.output_weights, 512U * 1000 * 2 + 512 * 4);
  EXPECT_EQ(shape.tied_output, 0U);
  EXPECT_EQ(shape.vocabulary, 1000U);
}

TEST(ModelShape, T54_TheFileSizeSaysNothingAboutATiedOutput) {
  auto model = model_of("qwen2");
  model.tensors.pop_back();
  const auto shape = shape_of(model);
  EXPECT_EQ(shape.tied_output, 512U * 1000 * 2);
  EXPECT_EQ(shape.output_weights, 512U * 1000 * 2 + 512 * 4);
  EXPECT_FALSE(shape.tied_repacks);
  model.tensors.front() = tensor("token_embd.weight", 512, 1000, 12);  // Q4_K
  EXPECT_TRUE(shape_of(model).tied_repacks);
}

TEST(ModelShape, M4_KeysAndValuesAreThoseOfEachLayersHeads) {
  auto shape = shape_of(model_of("llama"));
  EXPECT_EQ(keys_of(shape), std::vector<std::uint32_t>(4, 128));
  shape = shape_of(model_of("deci", {{"attention.head_count_kv", list({8, 0, 2, 1})}}));
  EXPECT_EQ(keys_of(shape), (std::vector<std::uint32_t>{512, 0, 128, 64}));
  shape = shape_of(model_of("gemma", {{"attention.key_length", std::uint64_t{256}},
                                      {"attention.value_length", std::uint64_t{128}}}));
  EXPECT_EQ(shape.layers[0].keys, 512U);
  EXPECT_EQ(shape.layers[0].values, 256U);
}

TEST(ModelShape, M4_WindowsFollowTheFilesPatternOrTheArchitecturesOwn) {
  const std::map<std::string, Value> window = {{"attention.sliding_window", std::uint64_t{512}}};
  const auto with = [&](const std::string& name, Value value) {
    auto keys = window;
    keys[name] = std::move(value);
    return keys;
  };
  using Windows = std::vector<bool>;
  EXPECT_EQ(windows_of(shape_of(model_of("gemma2", window))), (Windows{true, false, true, false}));
  EXPECT_EQ(windows_of(shape_of(model_of("cohere2", window))), (Windows{true, true, true, false}));
  EXPECT_EQ(windows_of(shape_of(model_of("smallthinker", window))),
            (Windows{false, true, true, true}));
  const std::string pattern = "attention.sliding_window_pattern";
  EXPECT_EQ(windows_of(shape_of(model_of("gemma3", with(pattern, std::uint64_t{3})))),
            (Windows{true, true, false, true}));
  EXPECT_EQ(windows_of(shape_of(model_of("gemma4", with(pattern, list({0, 1, 1, 0}))))),
            (Windows{false, true, true, false}));
  // libllama reads no window for these.
  EXPECT_EQ(windows_of(shape_of(model_of("llama", window))), Windows(4));
  EXPECT_EQ(windows_of(shape_of(model_of("phi3", window))), Windows(4));
  EXPECT_EQ(windows_of(shape_of(model_of("gemma3"))), Windows(4));
  EXPECT_EQ(windows_of(shape_of(model_of("exaone4", window))), Windows(4));  // only with 64 layers
  EXPECT_EQ(shape_of(model_of("gemma2")).sliding_window, 4096U);
  EXPECT_EQ(shape_of(model_of("llama4", window)).sliding_window, 8192U);
}

TEST(ModelShape, M4_StatesInsteadOfCells) {
  const std::map<std::string, Value> state_space = {{"ssm.conv_kernel", std::uint64_t{4}},
                                                    {"ssm.inner_size", std::uint64_t{1024}},
                                                    {"ssm.state_size", std::uint64_t{16}}};
  auto shape = shape_of(model_of("mamba", state_space));
  EXPECT_EQ(keys_of(shape), std::vector<std::uint32_t>(4, 0));
  EXPECT_EQ(shape.layers[0].state_bytes, (3U * 1024 + 16 * 1024) * 4);
  auto hybrid = state_space;
  hybrid["attention.head_count_kv"] = list({0, 2, 0, 2});
  shape = shape_of(model_of("jamba", hybrid));
  EXPECT_EQ(keys_of(shape), (std::vector<std::uint32_t>{0, 128, 0, 128}));
  EXPECT_GT(shape.layers[0].state_bytes, 0U);
  EXPECT_EQ(shape.layers[1].state_bytes, 0U);
  shape = shape_of(model_of("falcon-h1", state_space));
  EXPECT_GT(shape.layers[0].state_bytes, 0U);
  EXPECT_EQ(shape.layers[0].keys, 128U);
  shape = shape_of(model_of("rwkv7", {{"wkv.head_size", std::uint64_t{64}}}));
  EXPECT_EQ(shape.layers[0].state_bytes, (2U * 512 + 64 * 512) * 4);
  shape = shape_of(model_of("qwen3next", state_space));
  EXPECT_EQ(keys_of(shape), (std::vector<std::uint32_t>{0, 0, 0, 128}));
  auto said = state_space;
  said["attention.recurrent_layers"] = list({1, 0, 1, 0});
  EXPECT_EQ(keys_of(shape_of(model_of("qwen35", said))),
            (std::vector<std::uint32_t>{0, 128, 0, 128}));
  EXPECT_TRUE(shape.guessed);
}

TEST(ModelShape, M4_CompressedAttentionKeepsNoValues) {
  const auto shape =
      shape_of(model_of("deepseek2", {{"attention.head_count_kv", std::uint64_t{1}},
                                      {"attention.key_length", std::uint64_t{576}},
                                      {"attention.key_length_mla", std::uint64_t{192}}}));
  EXPECT_EQ(shape.layers[0].keys, 576U);
  EXPECT_EQ(shape.layers[0].values, 0U);
}

TEST(ModelShape, M4_EncodersKeepNothing) {
  const auto shape = shape_of(model_of("bert"));
  EXPECT_TRUE(shape.encoder);
  EXPECT_EQ(keys_of(shape), std::vector<std::uint32_t>(4, 0));
}

TEST(ModelShape, M4_AnUnknownArchitectureIsGuessed) {
  const auto shape = shape_of(model_of("of-tomorrow"));
  EXPECT_TRUE(shape.guessed);
  EXPECT_EQ(shape.layers[0].keys, 128U);
  EXPECT_TRUE(shape_of(model_of("glm4moe")).guessed);
  EXPECT_TRUE(shape_of(model_of("llama", {{"nextn_predict_layers", std::uint64_t{1}}})).guessed);
}

TEST(ModelShape, HostileHeadersGetAClearError) {
  EXPECT_THAT(error_of(model_of("llama", {{"block_count", std::uint64_t{0}}})),
              testing::HasSubstr("'llama.block_count' is missing"));
  EXPECT_THAT(error_of(model_of("llama", {{"block_count", std::uint64_t{1} << 40U}})),
              testing::HasSubstr("at most 512"));
  EXPECT_THAT(error_of(model_of("llama", {{"block_count", std::string("four")}})),
              testing::HasSubstr("must be a number"));
  EXPECT_THAT(error_of(model_of("llama", {{"embedding_length", std::int64_t{-1}}})),
              testing::HasSubstr("must be a number"));
  EXPECT_THAT(error_of(model_of("llama", {{"attention.head_count_kv", list({1, 2})}})),
              testing::HasSubstr("2 numbers for 4 layers"));
  EXPECT_THAT(error_of(model_of("llama", {{"attention.head_count_kv", list({1, -2, 1, 1})}})),
              testing::HasSubstr("impossible number for layer 1"));
  EXPECT_THAT(error_of(model_of("llama", {{"attention.key_length", UINT64_MAX}})),
              testing::HasSubstr("'llama.attention.key_length'"));
  EXPECT_THAT(error_of(model_of("la\x1bma", {{"block_count", std::uint64_t{0}}})),
              testing::HasSubstr("'lama.block_count' is missing"));
  auto beyond = model_of("llama");
  beyond.tensors.push_back(tensor("blk.4.x\x1b.weight", 8, 8));
  EXPECT_THAT(error_of(beyond), testing::HasSubstr("is of layer 4"));
  EXPECT_THAT(error_of(beyond), testing::Not(testing::HasSubstr("\x1b")));
}

TEST(ModelShape, ImpossibleSumsStayAtTheGreatest) {
  auto model = model_of("llama");
  for (Tensor& one : model.tensors) one.bytes = UINT64_MAX / 2;
  model.tensors.push_back(model.tensors[1]);
  model.tensors.push_back(model.tensors[1]);
  EXPECT_EQ(shape_of(model).layers[0].weights, UINT64_MAX);
  const auto wide =
      shape_of(model_of("llama", {{"attention.key_length", std::uint64_t{1} << 24U},
                                  {"attention.head_count_kv", std::uint64_t{65'536}}}));
  EXPECT_EQ(wide.layers[0].keys, 1U << 30U);
}

TEST(ModelShape, M4_AnAdapterIsSummedByLayer) {
  WholeModel adapter;
  adapter.tensors.push_back(tensor("blk.2.attn_q.weight.lora_a", 512, 8));
  adapter.tensors.push_back(tensor("blk.2.attn_q.weight.lora_b", 8, 512));
  const auto shape = adapter_shape(adapter);
  ASSERT_TRUE(shape.has_value());
  ASSERT_EQ(shape->layers.size(), 3U);
  EXPECT_EQ(shape->layers[2].weights, 2U * 512 * 8 * 2);
  adapter.tensors.push_back(tensor("blk.512.attn_q.weight.lora_b", 8, 512));
  EXPECT_FALSE(adapter_shape(adapter).has_value());
}

}  // namespace
}  // namespace berth::core
