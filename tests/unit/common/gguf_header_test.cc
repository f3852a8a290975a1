// What the header reader says of right and wrong files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/gguf/gguf.h"
#include "common/gguf/parse.h"
#include "tests/models/gguf_writer.h"
#include "tests/models/memory_source.h"

namespace berth::gguf {
namespace {

using test_models::GgufWriter;
using test_models::MemorySource;
using test_models::TensorType;
using testing::HasSubstr;

Result<Header> parse(std::string_view bytes) {
  MemorySource source(bytes);
  return parse_header(source, bytes.size(), "x.gguf");
}

void fill_zero(std::vector<float>& values, std::uint64_t /*row*/) {
  for (float& value : values) value = 0;
}

// Every kind of key, and two tensors.
GgufWriter small_file() {
  GgufWriter writer;
  writer.set_text("general.architecture", "llama");
  writer.set_u8("u8", 200);
  writer.set_u16("u16", 60'000);
  writer.set_u32("u32", 4'000'000'000U);
  writer.set_u64("u64", std::numeric_limits<std::uint64_t>::max());
  writer.set_i32("i32", -5);
  writer.set_i64("i64", 5);
  writer.set_f32("f32", 0.5F);
  writer.set_f64("f64", -0.25);
  writer.set_bool("yes", true);
  writer.set_i32s("numbers", {1, -2, 3});
  writer.set_texts("texts", {"a", "longest", ""});
  writer.add_tensor("a.weight", TensorType::kF32, {3, 2}, fill_zero);
  writer.add_tensor("b.weight", TensorType::kQ8_0, {64, 2, 2}, fill_zero);
  return writer;
}

// A file of one key with those bytes, straight from the type on.
std::string file_with_value(std::uint32_t type, std::string_view value) {
  GgufWriter writer;
  writer.set_raw("key", type, value);
  return writer.bytes();
}

std::string raw(std::uint64_t number, std::size_t bytes = 8) {
  return {reinterpret_cast<const char*>(&number), bytes};
}

std::string error_of(std::string_view bytes) {
  const auto header = parse(bytes);
  if (header) return "no error";
  EXPECT_EQ(header.error().reason, Reason::kInvalidArgument) << header.error().message;
  EXPECT_TRUE(header.error().message.starts_with("x.gguf: ")) << header.error().message;
  return header.error().message;
}

TEST(GgufHeader, ReadsEveryKindOfValue) {
  const std::string bytes = small_file().bytes();
  const auto header = parse(bytes);
  ASSERT_TRUE(header.has_value()) << header.error().message;
  EXPECT_EQ(header->version, 3U);
  EXPECT_EQ(header->text("general.architecture"), "llama");
  EXPECT_EQ(header->integer("u8"), 200U);
  EXPECT_EQ(header->integer("u16"), 60'000U);
  EXPECT_EQ(header->integer("u32"), 4'000'000'000U);
  EXPECT_EQ(header->integer("u64"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(header->integer("i32"), std::nullopt);  // negative
  EXPECT_EQ(header->number("i32"), -5.0);
  EXPECT_EQ(header->integer("i64"), 5U);
  EXPECT_EQ(header->number("f32"), 0.5);
  EXPECT_EQ(header->number("f64"), -0.25);
  EXPECT_EQ(header->number("u8"), 200.0);
  EXPECT_EQ(header->truth("yes"), true);
  EXPECT_EQ(header->truth("u8"), std::nullopt);
  EXPECT_EQ(header->text("u8"), std::nullopt);
  EXPECT_EQ(header->text("absent"), std::nullopt);
  EXPECT_EQ(header->integer("absent"), std::nullopt);
  EXPECT_EQ(header->number("absent"), std::nullopt);
  EXPECT_EQ(header->truth("absent"), std::nullopt);
  const auto& numbers = std::get<Array>(header->metadata.at("numbers"));
  EXPECT_EQ(numbers.numbers, (std::vector<double>{1, -2, 3}));
  const auto& texts = std::get<Array>(header->metadata.at("texts"));
  EXPECT_EQ(texts.size, 3U);
  EXPECT_EQ(texts.longest_string_bytes, 7U);
}

TEST(GgufHeader, ReadsTheTensorTable) {
  const std::string bytes = small_file().bytes();
  const auto header = parse(bytes);
  ASSERT_TRUE(header.has_value());
  ASSERT_EQ(header->tensors.size(), 2U);
  const Tensor& first = header->tensors[0];
  EXPECT_EQ(first.name, "a.weight");
  EXPECT_EQ(first.shape, (std::array<std::uint64_t, 4>{3, 2, 1, 1}));
  EXPECT_EQ(first.elements, 6U);
  EXPECT_EQ(first.bytes, 24U);
  EXPECT_EQ(first.offset, 0U);
  const Tensor& second = header->tensors[1];
  EXPECT_EQ(second.elements, 256U);
  EXPECT_EQ(second.bytes, 272U);
  EXPECT_EQ(second.offset, 32U);
  EXPECT_EQ(header->data_offset % 32, 0U);
  EXPECT_LT(header->data_offset - header->header_bytes, 32U);
  EXPECT_EQ(header->file_bytes, bytes.size());
}

TEST(GgufHeader, ReadsVersion2AndOtherAlignments) {
  GgufWriter writer = small_file();
  writer.set_version(2);
  writer.set_alignment(64);
  const auto header = parse(writer.bytes());
  ASSERT_TRUE(header.has_value()) << header.error().message;
  EXPECT_EQ(header->version, 2U);
  EXPECT_EQ(header->data_offset % 64, 0U);
}

TEST(GgufHeader, ReadsAFileWithoutTensors) {
  GgufWriter writer;
  writer.set_text("general.architecture", "llama");
  EXPECT_TRUE(parse(writer.bytes()).has_value());
  EXPECT_TRUE(parse(GgufWriter().bytes()).has_value());
}

TEST(GgufHeader, L19_HashIsThatOfTheHeaderAlone) {
  std::string bytes = small_file().bytes();
  const auto before = parse(bytes);
  bytes.back() = static_cast<char>(bytes.back() + 1);
  EXPECT_EQ(parse(bytes)->hash, before->hash);
  const std::size_t at = bytes.find("llama");
  bytes[at] = 'L';
  EXPECT_NE(parse(bytes)->hash, before->hash);
}

TEST(GgufHeader, L19_HashDoesNotDependOnHowTheFileIsRead) {
  GgufWriter writer = small_file();
  writer.set_text("long", std::string(400'000, 'x'));
  const std::string bytes = writer.bytes();
  const auto whole = parse(bytes);
  ASSERT_TRUE(whole.has_value());
  for (const std::size_t most : {std::size_t{1'000}, std::size_t{4'096}, std::size_t{131'072}}) {
    MemorySource source(bytes);
    source.limit_reads(most);
    const auto pieces = parse_header(source, bytes.size(), "x");
    ASSERT_TRUE(pieces.has_value());
    EXPECT_EQ(pieces->hash, whole->hash);
    EXPECT_EQ(pieces->text("long"), whole->text("long"));
  }
}

TEST(GgufHeader, VocabulariesAreSkippedWithoutACallPerToken) {
  GgufWriter writer;
  std::vector<std::string> tokens;
  tokens.reserve(150'000);
  for (int i = 0; i < 150'000; ++i) tokens.push_back("token" + std::to_string(i));
  writer.set_texts("tokenizer.ggml.tokens", tokens);
  writer.set_f32s("tokenizer.ggml.scores", std::vector<float>(150'000));
  const std::string bytes = writer.bytes();
  MemorySource source(bytes);
  const auto header = parse_header(source, bytes.size(), "x");
  ASSERT_TRUE(header.has_value());
  EXPECT_LE(source.reads(), bytes.size() / (64U << 10U) + 2);
  const auto& array = std::get<Array>(header->metadata.at("tokenizer.ggml.tokens"));
  EXPECT_EQ(array.size, 150'000U);
  EXPECT_EQ(array.longest_string_bytes, 11U);
  EXPECT_TRUE(std::get<Array>(header->metadata.at("tokenizer.ggml.scores")).numbers.empty());
}

TEST(GgufHeader, T14_EveryTruncationIsCalledOne) {
  const std::string bytes = small_file().bytes();
  const std::size_t last_data = bytes.size() - 16;  // padding after the last tensor
  ASSERT_TRUE(parse(bytes).has_value());
  ASSERT_TRUE(parse(std::string_view(bytes).substr(0, last_data)).has_value());
  for (std::size_t length = 0; length < last_data; ++length) {
    const std::string message = error_of(std::string_view(bytes).substr(0, length));
    if (length == 0) {
      EXPECT_THAT(message, HasSubstr("is empty"));
    } else {
      EXPECT_THAT(message, HasSubstr("truncated")) << length;
    }
  }
}

TEST(GgufHeader, T14_TruncatedDataSaysBothSizes) {
  const std::string bytes = small_file().bytes();
  EXPECT_EQ(error_of(std::string_view(bytes).substr(0, bytes.size() - 100)),
            "x.gguf: truncated: needs " + std::to_string(bytes.size() - 16) + " bytes, has " +
                std::to_string(bytes.size() - 100));
}

TEST(GgufHeader, T14_WhatIsNoGgufIsNotCalledTruncated) {
  EXPECT_THAT(error_of("FGUG\3\0\0\0"), HasSubstr("not a GGUF file: it begins with 'FGUG'"));
  EXPECT_THAT(error_of(std::string(100, '\0')), HasSubstr("begins with zeros"));
  EXPECT_THAT(error_of("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
              HasSubstr("Git LFS pointer"));
  EXPECT_THAT(error_of("<!DOCTYPE html><html></html>"), HasSubstr("begins with '<!DO'"));
  EXPECT_THAT(error_of("PK\3\4xxxxxxxxxxxxxxxxxxxxxxxxxxx"), HasSubstr("not a GGUF file"));
}

TEST(GgufHeader, T14_AFileThatIsCutWhileItIsReadIsNamedSo) {
  const std::string bytes = small_file().bytes();
  MemorySource source(std::string_view(bytes).substr(0, 100));
  const auto header = parse_header(source, bytes.size(), "x");
  ASSERT_FALSE(header.has_value());
  EXPECT_THAT(header.error().message, HasSubstr("was cut while it was read"));
}

TEST(GgufHeader, T14_AFailingDiskIsNotTheFilesFault) {
  const std::string bytes = small_file().bytes();
  MemorySource source(bytes);
  source.limit_reads(64);
  source.fail_at(64, EIO);
  const auto header = parse_header(source, bytes.size(), "x");
  ASSERT_FALSE(header.has_value());
  EXPECT_EQ(header.error().reason, Reason::kInternal);
  EXPECT_THAT(header.error().message, HasSubstr("Input/output error"));
}

TEST(GgufHeader, NamesTheVersion) {
  const auto with_version = [](std::uint32_t version) {
    GgufWriter writer = small_file();
    writer.set_version(version);
    return error_of(writer.bytes());
  };
  EXPECT_THAT(with_version(0), HasSubstr("version 0"));
  EXPECT_THAT(with_version(1), HasSubstr("version 1, which is no longer supported"));
  EXPECT_THAT(with_version(4), HasSubstr("version 4; this program knows 2 and 3"));
  EXPECT_THAT(with_version(0x03000000U), HasSubstr("big-endian"));
  EXPECT_THAT(with_version(0xFFFFFFFFU), HasSubstr("version 4294967295"));
}

TEST(GgufHeader, HostileCountsAreRefused) {
  const auto with_counts = [](std::uint64_t tensors, std::uint64_t keys) {
    return "GGUF" + raw(3, 4) + raw(tensors) + raw(keys) + std::string(100, '\0');
  };
  constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();
  EXPECT_THAT(error_of(with_counts(0, kHuge)), HasSubstr("at most 65536"));
  EXPECT_THAT(error_of(with_counts(0, 65'537)), HasSubstr("claims 65537 keys"));
  EXPECT_THAT(error_of(with_counts(0, 65'536)), HasSubstr("truncated header: it claims"));
  EXPECT_THAT(error_of(with_counts(kHuge, 0)), HasSubstr("at most 131072"));
  EXPECT_THAT(error_of(with_counts(131'072, 0)), HasSubstr("truncated header: it claims"));
  EXPECT_THAT(error_of(with_counts(1ULL << 63U, 0)), HasSubstr("at most 131072"));
}

TEST(GgufHeader, HostileLengthsAreRefused) {
  constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();
  // The key's own length.
  EXPECT_THAT(error_of("GGUF" + raw(3, 4) + raw(0) + raw(1) + raw(kHuge) + std::string(64, 'k')),
              HasSubstr("a key has at most 65535"));
  // A text's.
  EXPECT_THAT(error_of(file_with_value(8, raw(kHuge))), HasSubstr("at most 16777216"));
  EXPECT_THAT(error_of(file_with_value(8, raw(16U << 20U))), HasSubstr("truncated header"));
  // A list's.
  EXPECT_THAT(error_of(file_with_value(9, raw(4, 4) + raw(kHuge))), HasSubstr("at most 16777216"));
  EXPECT_THAT(error_of(file_with_value(9, raw(10, 4) + raw(1ULL << 61U))),
              HasSubstr("at most 16777216"));
  EXPECT_THAT(error_of(file_with_value(9, raw(4, 4) + raw(1'000'000))),
              HasSubstr("truncated header"));
  EXPECT_THAT(error_of(file_with_value(9, raw(8, 4) + raw(1'000'000))),
              HasSubstr("truncated header"));
  EXPECT_THAT(error_of(file_with_value(9, raw(8, 4) + raw(1) + raw(kHuge))),
              HasSubstr("at most 16777216"));
}

TEST(GgufHeader, UnknownTypesAreRefused) {
  EXPECT_THAT(error_of(file_with_value(13, raw(0))), HasSubstr("'key' has type 13"));
  EXPECT_THAT(error_of(file_with_value(0xFFFFFFFFU, raw(0))), HasSubstr("type 4294967295"));
  EXPECT_THAT(error_of(file_with_value(9, raw(13, 4) + raw(0))), HasSubstr("elements of type 13"));
  // A list of lists.
  EXPECT_THAT(error_of(file_with_value(9, raw(9, 4) + raw(1) + raw(4, 4) + raw(0))),
              HasSubstr("elements of type 9"));
}

TEST(GgufHeader, DuplicatesAreRefused) {
  const std::string key = raw(1) + "k" + raw(0, 4) + "v";
  EXPECT_THAT(error_of("GGUF" + raw(3, 4) + raw(0) + raw(2) + key + key),
              HasSubstr("key 'k' is there twice"));
  GgufWriter writer = small_file();
  writer.add_tensor("a.weight", TensorType::kF32, {4}, fill_zero);
  EXPECT_THAT(error_of(writer.bytes()), HasSubstr("tensor 'a.weight' is there twice"));
}

TEST(GgufHeader, AlignmentIsChecked) {
  const auto with_alignment = [](std::uint32_t alignment) {
    GgufWriter writer;
    writer.set_u32("general.alignment", alignment);
    return writer.bytes();
  };
  EXPECT_THAT(error_of(with_alignment(0)), HasSubstr("no power of two"));
  EXPECT_THAT(error_of(with_alignment(48)), HasSubstr("no power of two"));
  EXPECT_TRUE(parse(with_alignment(1U << 31U)).has_value());
  GgufWriter writer;
  writer.set_text("general.alignment", "32");
  EXPECT_THAT(error_of(writer.bytes()), HasSubstr("unsigned 32 bit"));
}

// A header with tensors as they are given, without any data.
struct RawTensor {
  std::string name = "t";
  std::vector<std::uint64_t> shape = {32};
  std::uint32_t type = 0;
  std::uint64_t offset = 0;
};
std::string file_with_tensors(const std::vector<RawTensor>& tensors, std::size_t data = 4096) {
  std::string bytes = "GGUF" + raw(3, 4) + raw(tensors.size()) + raw(0);
  for (const RawTensor& tensor : tensors) {
    bytes += raw(tensor.name.size()) + tensor.name + raw(tensor.shape.size(), 4);
    for (const std::uint64_t length : tensor.shape) bytes += raw(length);
    bytes += raw(tensor.type, 4) + raw(tensor.offset);
  }
  return bytes + std::string(data, '\0');
}

TEST(GgufHeader, ImpossibleSizesAreRefused) {
  constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();
  EXPECT_TRUE(parse(file_with_tensors({{}})).has_value());
  for (const std::vector<std::uint64_t>& shape :
       std::vector<std::vector<std::uint64_t>>{{1ULL << 32U, 1ULL << 32U},
                                               {1ULL << 32U, 1ULL << 32U, 1ULL << 32U, 1ULL << 32U},
                                               {kHuge},
                                               {kHuge, kHuge, kHuge, kHuge},
                                               {1ULL << 63U},
                                               {(1ULL << 63U) - 1, 2},
                                               // 2^62 elements of four bytes wrap to 0 in 64 bits.
                                               {1ULL << 62U},
                                               {1ULL << 60U}}) {
    EXPECT_THAT(error_of(file_with_tensors({{.shape = shape}})), HasSubstr("impossible size"));
  }
  EXPECT_THAT(error_of(file_with_tensors({{.shape = {32, 0}}})), HasSubstr("empty dimension"));
  EXPECT_THAT(error_of(file_with_tensors({{.shape = {1, 1, 1, 1, 1}}})), HasSubstr("5 dimensions"));
  EXPECT_THAT(error_of(file_with_tensors({{.offset = kHuge - 31}})),
              HasSubstr("impossible offset"));
  EXPECT_THAT(error_of(file_with_tensors({{.name = std::string(64, 'n')}})),
              HasSubstr("at most 63"));
  EXPECT_TRUE(parse(file_with_tensors({{.name = std::string(63, 'n')}})).has_value());
  // A scalar has no dimensions.
  EXPECT_TRUE(parse(file_with_tensors({{.shape = {}}})).has_value());
}

TEST(GgufHeader, TensorTypesAreChecked) {
  EXPECT_THAT(error_of(file_with_tensors({{.type = 4}})), HasSubstr("type 4, which is unknown"));
  EXPECT_THAT(error_of(file_with_tensors({{.type = 43}})), HasSubstr("type 43, which is unknown"));
  EXPECT_THAT(error_of(file_with_tensors({{.shape = {48}, .type = 8}})),
              HasSubstr("rows of 48 elements, which is no multiple of the 32"));
  EXPECT_THAT(error_of(file_with_tensors({{.shape = {32, 8}, .type = 12}})),
              HasSubstr("a block of Q4_K"));
}

TEST(GgufHeader, PlacesOfTensorsAreChecked) {
  EXPECT_THAT(error_of(file_with_tensors({{.offset = 16}})), HasSubstr("is not aligned"));
  EXPECT_THAT(error_of(file_with_tensors({{.name = "a"}, {.name = "b", .offset = 96}})),
              HasSubstr("'a' and 'b' overlap"));
  EXPECT_THAT(error_of(file_with_tensors({{.name = "a"}, {.name = "b"}})), HasSubstr("overlap"));
  // In any order, and with gaps.
  EXPECT_TRUE(parse(file_with_tensors({{.name = "a", .offset = 512}, {.name = "b"}})).has_value());
  EXPECT_THAT(error_of(file_with_tensors({{.name = "a", .offset = 1ULL << 40U}})),
              HasSubstr("truncated: needs 10995116"));
}

TEST(GgufHeader, NamesOutOfTheFileAreSanitised) {
  const std::string key = raw(5) + "k\x1b[1m" + raw(13, 4) + "v";
  EXPECT_THAT(error_of("GGUF" + raw(3, 4) + raw(0) + raw(1) + key), HasSubstr("'k[1m'"));
}

TEST(GgufHeader, MetadataIsBoundedInMemory) {
  // Five texts of 16 MiB each are allowed one by one.
  std::string bytes = "GGUF" + raw(3, 4) + raw(0) + raw(5);
  for (char name = 'a'; name < 'f'; ++name) {
    bytes += raw(1) + name + raw(8, 4) + raw(16U << 20U);
    bytes.append(16U << 20U, 'x');
  }
  EXPECT_THAT(error_of(bytes), HasSubstr("metadata takes more than 64.0 MiB"));
}

// Zeros without end; knows how far it was read.
class Zeros : public ByteSource {
 public:
  std::ptrdiff_t read_at(void* out, std::size_t count, std::uint64_t offset) override {
    std::memset(out, 0, count);
    read_to = std::max(read_to, offset + count);
    return static_cast<std::ptrdiff_t>(count);
  }

  std::uint64_t read_to = 0;
};

TEST(GgufHeader, NothingIsReadBeyondTheBoundOfAHeader) {
  Zeros source;
  ByteReader reader(source, std::uint64_t{1} << 40U, 1'000'000);
  EXPECT_TRUE(reader.skip(999'999));
  std::uint16_t number = 0;
  EXPECT_FALSE(reader.read(number));
  EXPECT_EQ(reader.failure(), ByteReader::Failure::kLimit);
  EXPECT_EQ(source.read_to, 1'000'000U);
}

RC_GTEST_PROP(GgufHeader, NumbersAndTextsReadBack,
              (std::uint64_t natural, std::int64_t integer, const std::string& text,
               const std::vector<std::string>& texts)) {
  GgufWriter writer;
  writer.set_u64("natural", natural);
  writer.set_i64("integer", integer);
  writer.set_text("text", text);
  writer.set_texts("texts", texts);
  const auto header = parse(writer.bytes());
  RC_ASSERT(header.has_value());
  RC_ASSERT(header->integer("natural") == natural);
  RC_ASSERT(std::get<std::int64_t>(header->metadata.at("integer")) == integer);
  RC_ASSERT(header->text("text") == text);
  RC_ASSERT(std::get<Array>(header->metadata.at("texts")).size == texts.size());
}

RC_GTEST_PROP(GgufHeader, DamagedBytesNeverCrash,
              (const std::vector<std::pair<std::uint16_t, std::uint8_t>>& changes)) {
  static const std::string bytes = small_file().bytes();
  std::string damaged = bytes;
  for (const auto& [at, value] : changes) {
    damaged[at % damaged.size()] = static_cast<char>(value);
  }
  const auto header = parse(damaged);
  RC_ASSERT(header.has_value() || !header.error().message.empty());
}

TEST(GgufHeader, EverySingleDamagedByteIsSurvived) {
  const std::string bytes = small_file().header();
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const int value : {0x00, 0x01, 0x7F, 0x80, 0xFF}) {
      std::string damaged = bytes + std::string(4096, '\0');
      damaged[at] = static_cast<char>(value);
      const auto header = parse(damaged);
      EXPECT_TRUE(header.has_value() || !header.error().message.empty());
    }
  }
}

}  // namespace
}  // namespace berth::gguf
