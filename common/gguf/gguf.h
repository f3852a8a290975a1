#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/result.h"

namespace berth::gguf {

// Reader of GGUF headers (versions 2 and 3, little-endian), hardened against hostile files: every
// count, length and offset is checked against the file's size and the bounds below before it is
// used, and nothing is allocated on a file's word alone. Format:
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md

// Bounds. A file beyond them is refused by name of the bound.
inline constexpr std::uint64_t kMaxKeys = 65'536;
inline constexpr std::uint64_t kMaxTensors = 131'072;  // of all shards together, too
inline constexpr std::uint64_t kMaxKeyBytes = 65'535;
inline constexpr std::uint64_t kMaxStringBytes = 16ULL << 20;  // a value; chat templates
inline constexpr std::uint64_t kMaxArrayElements = 16ULL << 20;
inline constexpr std::uint64_t kMaxHeaderBytes = 256ULL << 20;
// What one header's metadata may take in memory.
inline constexpr std::uint64_t kMaxKeptBytes = 64ULL << 20;
inline constexpr std::uint64_t kMaxShards = 4096;

// Metadata arrays longer than this are counted but not kept (tokenizer vocabularies).
inline constexpr std::uint64_t kKeptArrayElements = 4096;

struct Array {
  std::uint64_t size = 0;                  // elements in the file
  std::vector<double> numbers;             // kept elements of a numeric array
  std::uint64_t longest_string_bytes = 0;  // of a string array
};
using Value = std::variant<std::uint64_t, std::int64_t, double, bool, std::string, Array>;

// One tensor of the table.
struct Tensor {
  std::string name;        // at most 63 bytes, as ggml
  std::uint32_t type = 0;  // ggml_type
  std::array<std::uint64_t, 4> shape{1, 1, 1, 1};
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;   // as stored
  std::uint64_t offset = 0;  // from the beginning of the data section
};

// A file's header. A value.
struct Header {
  std::uint32_t version = 0;
  std::map<std::string, Value, std::less<>> metadata;
  std::vector<Tensor> tensors;
  std::uint64_t header_bytes = 0;  // up to and without the padding before the data
  std::uint64_t data_offset = 0;   // of the data section in the file
  std::uint64_t file_bytes = 0;
  std::uint64_t hash = 0;  // XXH3 of the header's bytes (L19: file identity)
  std::int64_t modified_unix_ms = 0;

  [[nodiscard]] std::optional<std::string> text(std::string_view key) const;
  // Unsigned and non-negative signed integers, whatever their width in the file.
  [[nodiscard]] std::optional<std::uint64_t> integer(std::string_view key) const;
  [[nodiscard]] std::optional<double> number(std::string_view key) const;
  [[nodiscard]] std::optional<bool> truth(std::string_view key) const;
};

// Reads the header of one file. Blocks on the file system. Opens with O_NOFOLLOW not set (models
// may be links), O_NONBLOCK, and takes only regular files. Errors, all kInvalidArgument but for the
// open itself (kNotFound, kPermissionDenied) and a failing disk (kInternal): empty, bad magic,
// version, big-endian, truncated header (where), count or size out of bounds, duplicate key or
// tensor, unknown tensor type, overlapping or unaligned tensors, data beyond the end of the file
// ("truncated: needs 1234 bytes, has 1000").
Result<Header> read_header(const std::string& path);

// What a catalogue wants to know of a model: the header's meaning, small enough to be kept.
struct Summary {
  std::string architecture;            // general.architecture
  std::string title;                   // general.name
  std::uint64_t parameters = 0;        // sum of elements
  std::uint64_t file_bytes = 0;        // all shards
  std::string quantization;            // type of most bytes: "Q4_K", "F16"
  std::uint32_t declared_context = 0;  // ARCH.context_length; 0: not said
  std::uint32_t layers = 0;            // ARCH.block_count
  std::uint32_t embedding = 0;         // ARCH.embedding_length
  bool has_chat_template = false;
  bool embeds = false;        // a pooling type is set, or an encoder architecture
  bool is_projector = false;  // clip/mmproj: not a model of its own
  bool is_adapter = false;    // general.type = adapter
  std::uint64_t vocabulary = 0;
  std::uint64_t longest_token_bytes = 0;
  std::vector<std::string> shards;    // absolute paths, in order; one unless split
  std::uint64_t header_hash = 0;      // of the first shard
  std::int64_t modified_unix_ms = 0;  // newest of the shards
};

// Reads a model: its first shard and the headers of all its others, which must be there and fit
// (split.no, split.count, split.tensors.count). Errors as read_header(), naming the shard; a
// missing shard names the file that should be there. Refuses what is not the first shard.
Result<Summary> read_model(const std::string& path);

// All that the headers of a model's shards say. Up to some ten megabytes: not to be kept.
struct WholeModel {
  Summary summary;
  Header first;                 // of the first shard; its metadata is the model's, tensors moved
  std::vector<Tensor> tensors;  // of all shards, in their order
};

// As read_model(), with everything that was read on the way.
Result<WholeModel> read_whole_model(const std::string& path);

// Whether a file name is that of a shard after the first: "x-00002-of-00003.gguf".
bool is_later_shard(std::string_view file_name);
// The model's name: file stem without "-00001-of-00003".
std::string model_name(std::string_view file_name);

// "Q4_K"; empty where the type is unknown. Bytes of `elements` values in that type (0: unknown).
std::string_view type_name(std::uint32_t type);
std::uint64_t type_bytes(std::uint32_t type, std::uint64_t elements);

}  // namespace berth::gguf
