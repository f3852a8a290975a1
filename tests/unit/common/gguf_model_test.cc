// Files on disk: models of one and of several shards, and what is no file at all.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>

#include "common/fd.h"
#include "common/gguf/gguf.h"
#include "tests/models/broken_models.h"
#include "tests/models/gguf_writer.h"
#include "tests/models/random_model.h"
#include "tests/unit/common/temp_dir.h"

namespace berth::gguf {
namespace {

using test::TempDir;
using test_models::GgufWriter;
using test_models::ModelOptions;
using test_models::write_model;
using testing::HasSubstr;

std::string message_of(const std::string& path) {
  const auto model = read_model(path);
  return model ? "no error" : model.error().message;
}

void put(int fd, const std::string& bytes, std::uint64_t offset) {
  ASSERT_EQ(::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)),
            static_cast<ssize_t>(bytes.size()));
}

template <typename Number>
std::string raw(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

// A file of holes: `lists` keys with 64 bit numbers, 128 MiB each, and more behind them.
void write_sparse(const std::string& path, std::uint64_t tensors, std::uint64_t lists) {
  constexpr std::uint32_t kArray = 9;
  constexpr std::uint32_t kUint64 = 10;
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(file);
  ASSERT_EQ(::ftruncate(file.get(), off_t{1} << 40U), 0);
  std::string bytes = "GGUF" + raw(std::uint32_t{3}) + raw(tensors) + raw(lists);
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < lists; ++i) {
    bytes += raw(std::uint64_t{8}) + raw(std::uint64_t{0x6161616161616161} + i) + raw(kArray) +
             raw(kUint64) + raw(kMaxArrayElements);
    put(file.get(), bytes, at);
    at += bytes.size() + kMaxArrayElements * sizeof(std::uint64_t);
    bytes.clear();
  }
}

TEST(GgufModel, AHugeFileOfHolesIsRefusedAtTheBoundOfAHeader) {
  TempDir dir;
  for (const std::uint64_t tensors : {0U, 1U}) {
    write_sparse(dir.file("x.gguf"), tensors, 1000);
    EXPECT_EQ(message_of(dir.file("x.gguf")), "x.gguf: its header is longer than 256 MiB");
  }
}

TEST(GgufModel, SaysWhatACatalogueWantsToKnow) {
  TempDir dir;
  ModelOptions options;
  options.name = "Random \x1b[1mName";
  options.context = 2048;
  ASSERT_TRUE(write_model(options, dir.file("x.gguf")).has_value());
  const auto model = read_model(dir.file("x.gguf"));
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_EQ(model->architecture, "llama");
  EXPECT_EQ(model->title, "Random [1mName");
  EXPECT_EQ(model->quantization, "F16");
  EXPECT_EQ(model->declared_context, 2048U);
  EXPECT_EQ(model->layers, options.layers);
  EXPECT_EQ(model->embedding, options.embedding);
  EXPECT_EQ(model->vocabulary, options.vocabulary);
  EXPECT_EQ(model->longest_token_bytes, std::strlen("<|endoftext|>"));
  EXPECT_EQ(model->file_bytes, std::filesystem::file_size(dir.file("x.gguf")));
  // Embedding and output, two layers of attention, feed-forward and norms, the last norm.
  EXPECT_EQ(model->parameters,
            2 * 64 * 1024 + 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128 + 128) + 64);
  EXPECT_TRUE(model->has_chat_template);
  EXPECT_FALSE(model->embeds);
  EXPECT_FALSE(model->is_adapter);
  EXPECT_FALSE(model->is_projector);
  EXPECT_EQ(model->shards, (std::vector<std::string>{dir.file("x.gguf")}));
  EXPECT_GT(model->modified_unix_ms, 1'600'000'000'000);
  EXPECT_NE(model->header_hash, 0U);
}

TEST(GgufModel, TellsWhatIsNoChatModel) {
  TempDir dir;
  const auto summary = [&](const char* key, auto&& change) {
    auto writer = test_models::make_model({});
    change(*writer);
    const std::string path = dir.file(std::string(key) + ".gguf");
    EXPECT_TRUE(writer->write(path).has_value());
    auto model = read_model(path);
    EXPECT_TRUE(model.has_value());
    return *model;
  };
  EXPECT_TRUE(summary("pool", [](GgufWriter& w) { w.set_u32("llama.pooling_type", 1); }).embeds);
  EXPECT_FALSE(summary("none", [](GgufWriter& w) { w.set_u32("llama.pooling_type", 0); }).embeds);
  EXPECT_TRUE(summary("bert", [](GgufWriter& w) {
                w.set_text("general.architecture", "nomic-bert");
              }).embeds);
  EXPECT_TRUE(summary("clip", [](GgufWriter& w) {
                w.set_text("general.architecture", "clip");
              }).is_projector);
  EXPECT_TRUE(
      summary("lora", [](GgufWriter& w) { w.set_text("general.type", "adapter"); }).is_adapter);
  EXPECT_FALSE(summary("plain", [](GgufWriter& w) {
                 w.remove_key("tokenizer.chat_template");
               }).has_chat_template);
}

TEST(GgufModel, AFileWithoutArchitectureIsNoModel) {
  TempDir dir;
  GgufWriter writer;
  writer.set_text("general.type", "imatrix");
  ASSERT_TRUE(writer.write(dir.file("x.gguf")).has_value());
  EXPECT_THAT(message_of(dir.file("x.gguf")), HasSubstr("does not say its architecture"));
}

TEST(GgufModel, RelativePathsAndLinksAreFine) {
  TempDir dir;
  ASSERT_TRUE(write_model({}, dir.file("x.gguf")).has_value());
  std::filesystem::create_symlink("x.gguf", dir.file("link.gguf"));
  const auto linked = read_model(dir.file("link.gguf"));
  ASSERT_TRUE(linked.has_value());
  EXPECT_EQ(linked->shards.front(), dir.file("link.gguf"));

  const std::string relative =
      std::filesystem::relative(dir.file("x.gguf"), std::filesystem::current_path()).string();
  const auto model = read_model(relative);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_TRUE(std::filesystem::path(model->shards.front()).is_absolute());
}

TEST(GgufModel, ReadsAllShards) {
  TempDir dir;
  ModelOptions options;
  ASSERT_TRUE(write_model(options, dir.file("whole.gguf")).has_value());
  options.shards = 3;
  const auto files = write_model(options, dir.file("split.gguf"));
  ASSERT_TRUE(files.has_value());
  const auto whole = read_model(dir.file("whole.gguf"));
  const auto split = read_model(files->front());
  ASSERT_TRUE(split.has_value()) << split.error().message;
  EXPECT_EQ(split->shards, *files);
  EXPECT_EQ(split->parameters, whole->parameters);
  EXPECT_EQ(split->quantization, whole->quantization);
  std::uint64_t bytes = 0;
  for (const std::string& file : *files) bytes += std::filesystem::file_size(file);
  EXPECT_EQ(split->file_bytes, bytes);
}

struct Shards {
  explicit Shards(std::uint32_t count) {
    ModelOptions options;
    options.shards = count;
    files = write_model(options, dir.file("m.gguf")).value();
  }
  TempDir dir;
  std::vector<std::string> files;
};

TEST(GgufModel, T13_AMissingShardIsNamed) {
  const Shards model(3);
  std::filesystem::remove(model.files[1]);
  const auto read = read_model(model.files[0]);
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().message,
            "shard 2 of 3 is missing: m-00002-of-00003.gguf should be beside the first");
  EXPECT_EQ(read.error().reason, Reason::kNotFound);
}

TEST(GgufModel, T13_ATruncatedShardIsNamed) {
  const Shards model(3);
  const auto size = std::filesystem::file_size(model.files[2]);
  std::filesystem::resize_file(model.files[2], size - 1'000);
  EXPECT_THAT(message_of(model.files[0]), HasSubstr("m-00003-of-00003.gguf: truncated: needs "));
  std::filesystem::resize_file(model.files[2], 20);
  EXPECT_THAT(message_of(model.files[0]), HasSubstr("m-00003-of-00003.gguf: truncated header"));
  std::filesystem::resize_file(model.files[2], 0);
  EXPECT_THAT(message_of(model.files[0]), HasSubstr("m-00003-of-00003.gguf: is empty"));
}

TEST(GgufModel, T13_ShardsOfDifferentModelsDoNotFit) {
  const Shards three(3);
  const Shards two(2);
  std::filesystem::copy_file(two.files[1], three.files[1],
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(message_of(three.files[0]),
              HasSubstr("should be shard 2 of 3, but says that it is shard 2 of 2"));
}

TEST(GgufModel, T13_AShardInTheWrongPlaceDoesNotFit) {
  const Shards model(3);
  std::filesystem::copy_file(model.files[2], model.files[1],
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(message_of(model.files[0]), HasSubstr("says that it is shard 3 of 3"));
}

TEST(GgufModel, T13_AWholeModelIsNoShard) {
  const Shards model(2);
  ASSERT_TRUE(write_model({}, model.files[1]).has_value());
  EXPECT_THAT(message_of(model.files[0]), HasSubstr("says that it is shard ? of ?"));
}

TEST(GgufModel, ALaterShardPointsToTheFirst) {
  const Shards model(3);
  EXPECT_EQ(message_of(model.files[1]),
            "m-00002-of-00003.gguf: is shard 2 of 3 and not the first: use m-00001-of-00003.gguf");
}

TEST(GgufModel, ARenamedFirstShardIsExplained) {
  const Shards model(2);
  std::filesystem::rename(model.files[0], model.dir.file("other.gguf"));
  EXPECT_THAT(message_of(model.dir.file("other.gguf")),
              HasSubstr("is the first of 2 shards, but its name does not end in "
                        "'-00001-of-00002.gguf'"));
}

TEST(GgufModel, HostileShardCountsAreRefused) {
  TempDir dir;
  auto writer = test_models::make_model({});
  writer->set_u64("split.count", std::uint64_t{1} << 60U);
  writer->set_u16("split.no", 0);
  ASSERT_TRUE(writer->write(dir.file("x-00001-of-00002.gguf")).has_value());
  EXPECT_THAT(message_of(dir.file("x-00001-of-00002.gguf")), HasSubstr("which cannot be"));
  writer->set_u64("split.count", 2);
  writer->set_u64("split.no", 7);
  ASSERT_TRUE(writer->write(dir.file("x-00001-of-00002.gguf")).has_value());
  EXPECT_THAT(message_of(dir.file("x-00001-of-00002.gguf")), HasSubstr("which cannot be"));
}

TEST(GgufModel, TensorsOfAllShardsAreCounted) {
  const Shards model(2);
  auto writer = test_models::make_model({});
  writer->remove_tensor("output_norm.weight");
  const std::string other = model.dir.file("o.gguf");
  ASSERT_TRUE(writer->write_shards(test_models::model_files(other, 2)).has_value());
  std::filesystem::copy_file(model.dir.file("o-00002-of-00002.gguf"), model.files[1],
                             std::filesystem::copy_options::overwrite_existing);
  const std::string message = message_of(model.files[0]);
  EXPECT_TRUE(message.find("tensors, but they have") != std::string::npos ||
              message.find("is in an earlier shard") != std::string::npos)
      << message;
}

TEST(GgufModel, AWholeModelMayBearAShardsName) {
  TempDir dir;
  ASSERT_TRUE(write_model({}, dir.file("x-00001-of-00003.gguf")).has_value());
  EXPECT_EQ(message_of(dir.file("x-00001-of-00003.gguf")), "no error");
}

TEST(GgufModel, WhatIsNoFileIsRefused) {
  TempDir dir;
  EXPECT_EQ(message_of(dir.path()), std::filesystem::path(dir.path()).filename().string() +
                                        ": is a directory, not a model file");
  EXPECT_THAT(message_of("/dev/null"), HasSubstr("is a device"));
  ASSERT_EQ(::mkfifo(dir.file("pipe.gguf").c_str(), 0600), 0);
  EXPECT_THAT(message_of(dir.file("pipe.gguf")), HasSubstr("is a named pipe"));

  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = dir.file("s.gguf");
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_THAT(message_of(path), HasSubstr("is a socket"));

  std::filesystem::create_symlink("loop.gguf", dir.file("loop.gguf"));
  EXPECT_THAT(message_of(dir.file("loop.gguf")), HasSubstr("cannot be opened"));
  EXPECT_THAT(message_of(""), HasSubstr("is not a path"));
  EXPECT_THAT(message_of(std::string("a\0b", 3)), HasSubstr("is not a path"));
}

TEST(GgufModel, AnAbsentFileIsNotFound) {
  TempDir dir;
  const auto absent = read_model(dir.file("absent.gguf"));
  ASSERT_FALSE(absent.has_value());
  EXPECT_EQ(absent.error().reason, Reason::kNotFound);
  EXPECT_EQ(absent.error().message, "absent.gguf: there is no such file");
  ASSERT_TRUE(write_model({}, dir.file("x.gguf")).has_value());
  EXPECT_EQ(read_model(dir.file("x.gguf/y.gguf")).error().reason, Reason::kNotFound);
}

TEST(GgufModel, AnUnreadableFileIsPermissionDenied) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  TempDir dir;
  ASSERT_TRUE(write_model({}, dir.file("x.gguf")).has_value());
  ASSERT_EQ(::chmod(dir.file("x.gguf").c_str(), 0), 0);
  const auto model = read_model(dir.file("x.gguf"));
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().reason, Reason::kPermissionDenied);
}

class BrokenModels : public testing::TestWithParam<test_models::FaultInfo> {};

TEST_P(BrokenModels, T14_AreRefusedByNameOrLeftToTheRuntime) {
  const auto& [fault, name, header_shows, reader_says] = GetParam();
  TempDir dir;
  const auto path = test_models::write_broken_model(fault, dir.file("b.gguf"));
  ASSERT_TRUE(path.has_value()) << path.error().message;
  const std::string message = message_of(*path);
  if (header_shows) {
    EXPECT_THAT(message, HasSubstr(std::string(reader_says)));
  } else {
    EXPECT_EQ(message, "no error");
  }
}

INSTANTIATE_TEST_SUITE_P(All, BrokenModels, testing::ValuesIn(test_models::all_faults()),
                         [](const auto& tested) {
                           std::string name(tested.param.name);
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace berth::gguf
