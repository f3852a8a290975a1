#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "common/gguf/file_source.h"
#include "common/gguf/gguf.h"
#include "common/gguf/input.h"
#include "common/gguf/names.h"
#include "common/text.h"

namespace berth::gguf {
namespace {

constexpr std::size_t kMaxTitleBytes = 200;
constexpr std::size_t kMaxArchitectureBytes = 64;

// Architectures that turn text into vectors and never generate.
constexpr std::array<std::string_view, 11> kEncoders = {
    "bert",         "eurobert",       "gemma-embedding", "gemma-embedding2",
    "jina-bert-v2", "jina-bert-v3",   "modern-bert",     "neo-bert",
    "nomic-bert",   "nomic-bert-moe", "t5encoder"};

tl::unexpected<Error> bad(const std::string& path, const std::string& what) {
  return fail(Reason::kInvalidArgument, shown_file_name(path) + ": " + what);
}

std::uint32_t bounded_integer(const Header& header, const std::string& key) {
  constexpr std::uint64_t kLargest = 0xFFFF'FFFFU;
  return static_cast<std::uint32_t>(std::min(header.integer(key).value_or(0), kLargest));
}

std::string absolute_path(const std::string& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

// What the headers of all shards add up to.
struct Totals {
  std::map<std::uint32_t, std::uint64_t> bytes_by_type;
  std::unordered_set<std::string> names;  // kept only where there is more than one shard
};

Status add_shard(const std::string& path, Header& header, bool several, Totals& totals,
                 WholeModel& whole) {
  Summary& summary = whole.summary;
  if (whole.tensors.size() + header.tensors.size() > kMaxTensors) {
    return bad(path, "the shards have more than " + std::to_string(kMaxTensors) + " tensors");
  }
  for (const Tensor& tensor : header.tensors) {
    summary.parameters += tensor.elements;
    totals.bytes_by_type[tensor.type] += tensor.bytes;
    if (several && !totals.names.insert(tensor.name).second) {
      return bad(path, "a tensor of this shard is in an earlier shard, too");
    }
  }
  whole.tensors.insert(whole.tensors.end(), std::make_move_iterator(header.tensors.begin()),
                       std::make_move_iterator(header.tensors.end()));
  header.tensors.clear();
  summary.file_bytes += header.file_bytes;
  summary.modified_unix_ms = std::max(summary.modified_unix_ms, header.modified_unix_ms);
  summary.shards.push_back(path);
  return {};
}

// Where the shards of a split model are.
struct Split {
  std::string directory;  // with its slash, or empty
  std::string prefix;
  std::uint32_t count = 1;

  [[nodiscard]] std::string path_of(std::uint32_t number) const {
    return directory + shard_name(prefix, number, count);
  }
};

Result<Split> split_of(const std::string& path, const Header& header) {
  const std::size_t slash = path.find_last_of('/');
  const std::size_t name_at = slash == std::string::npos ? 0 : slash + 1;
  const std::string_view file_name = std::string_view(path).substr(name_at);
  const auto named = parse_shard_name(file_name);

  Split split;
  split.directory = path.substr(0, name_at);
  const std::uint64_t count = header.integer("split.count").value_or(1);
  const std::uint64_t index = header.integer("split.no").value_or(0);
  // A file that is whole may bear any name.
  if (count <= 1 && index == 0) return split;

  if (count > kMaxShards || index >= count) {
    return bad(path, "says that it is shard " + std::to_string(index + 1) + " of " +
                         std::to_string(count) + ", which cannot be");
  }
  split.count = static_cast<std::uint32_t>(count);
  if (index != 0) {
    std::string message = "is shard " + std::to_string(index + 1) + " of " + std::to_string(count) +
                          " and not the first";
    if (named) {
      message +=
          ": use " + printable_line(shard_name(named->prefix, 1, split.count), kMaxTitleBytes);
    }
    return bad(path, message);
  }
  if (!named || named->number != 1 || named->count != count) {
    return bad(path, "is the first of " + std::to_string(count) +
                         " shards, but its name does not end in '" +
                         shard_name("", 1, split.count) + "', so the others cannot be found");
  }
  split.prefix = named->prefix;
  return split;
}

Result<Header> read_later_shard(const Split& split, std::uint32_t number) {
  const std::string path = split.path_of(number);
  const std::string position =
      "shard " + std::to_string(number) + " of " + std::to_string(split.count);
  auto header = read_header(path);
  if (!header) {
    Error error = std::move(header).error();
    if (error.reason == Reason::kNotFound) {
      error.message =
          position + " is missing: " + shown_file_name(path) + " should be beside the first";
    }
    return fail(std::move(error));
  }
  const auto index = header->integer("split.no");
  const auto count = header->integer("split.count");
  if (index != number - 1 || count != split.count) {
    const auto shown = [](std::optional<std::uint64_t> value, std::uint64_t add) {
      return value ? std::to_string(*value + add) : std::string("?");
    };
    return bad(path, "should be " + position + ", but says that it is shard " + shown(index, 1) +
                         " of " + shown(count, 0));
  }
  return header;
}

void describe(const Header& header, Summary& summary) {
  const std::string& prefix = summary.architecture;
  summary.title = printable_line(header.text("general.name").value_or(""), kMaxTitleBytes);
  summary.declared_context = bounded_integer(header, prefix + ".context_length");
  summary.layers = bounded_integer(header, prefix + ".block_count");
  summary.embedding = bounded_integer(header, prefix + ".embedding_length");
  summary.has_chat_template = !header.text("tokenizer.chat_template").value_or("").empty();
  const std::string kind = header.text("general.type").value_or("");
  summary.is_projector = prefix == "clip" || kind == "mmproj";
  summary.is_adapter = kind == "adapter";
  const bool pools = header.integer(prefix + ".pooling_type").value_or(0) != 0;
  const bool encodes = std::find(kEncoders.begin(), kEncoders.end(), prefix) != kEncoders.end();
  summary.embeds = pools || encodes;
  const auto tokens = header.metadata.find("tokenizer.ggml.tokens");
  if (tokens != header.metadata.end()) {
    if (const auto* array = std::get_if<Array>(&tokens->second)) {
      summary.vocabulary = array->size;
      summary.longest_token_bytes = array->longest_string_bytes;
    }
  }
  summary.header_hash = header.hash;
}

}  // namespace

Result<WholeModel> read_whole_model(const std::string& path) {
  auto header = read_header(path);
  if (!header) return fail(std::move(header).error());
  const std::string whole_path = absolute_path(path);
  auto split = split_of(whole_path, *header);
  if (!split) return fail(std::move(split).error());

  WholeModel whole;
  whole.first = std::move(*header);
  const Header& first = whole.first;
  Summary& summary = whole.summary;
  summary.architecture =
      printable_line(first.text("general.architecture").value_or(""), kMaxArchitectureBytes);
  if (summary.architecture.empty()) {
    return bad(path, "does not say its architecture ('general.architecture'): it is no model");
  }
  describe(first, summary);

  const bool several = split->count > 1;
  Totals totals;
  const std::uint64_t expected_tensors = first.integer("split.tensors.count").value_or(0);
  if (auto added = add_shard(whole_path, whole.first, several, totals, whole); !added) {
    return fail(std::move(added).error());
  }
  for (std::uint32_t number = 2; number <= split->count; ++number) {
    auto shard = read_later_shard(*split, number);
    if (!shard) return fail(std::move(shard).error());
    if (auto added = add_shard(split->path_of(number), *shard, several, totals, whole); !added) {
      return fail(std::move(added).error());
    }
  }
  if (several && expected_tensors != 0 && expected_tensors != whole.tensors.size()) {
    return bad(path, "says that its shards have " + std::to_string(expected_tensors) +
                         " tensors, but they have " + std::to_string(whole.tensors.size()));
  }
  std::uint64_t most = 0;
  for (const auto& [type, bytes] : totals.bytes_by_type) {
    if (bytes <= most) continue;
    most = bytes;
    summary.quantization = type_name(type);
  }
  return whole;
}

Result<Summary> read_model(const std::string& path) {
  auto whole = read_whole_model(path);
  if (!whole) return fail(std::move(whole).error());
  return std::move(whole->summary);
}

}  // namespace berth::gguf
