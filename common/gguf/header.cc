#include <array>
#include <bit>
#include <string>
#include <utility>

#include "common/gguf/file_source.h"
#include "common/gguf/gguf.h"
#include "common/gguf/metadata.h"
#include "common/gguf/parse.h"
#include "common/gguf/tensor_table.h"
#include "common/text.h"

namespace berth::gguf {
namespace {

constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::string_view kMagic = "GGUF";
// Of `git lfs`: what is there in a file's place when only the repository was fetched.
constexpr std::string_view kLfsPointer = "version https://git-lfs";

// Says what the file begins with, and for what people meet most often, why.
std::string describe_beginning(ByteReader& reader, std::string_view magic) {
  std::string beginning(magic);
  char next = 0;
  while (beginning.size() < kLfsPointer.size() && reader.read(next)) beginning.push_back(next);
  if (beginning == kLfsPointer) {
    return "is a Git LFS pointer and not the model itself: fetch it with `git lfs pull`";
  }
  const bool zeros = beginning.find_first_not_of('\0') == std::string::npos;
  if (zeros) return "is not a GGUF file: it begins with zeros";
  return "is not a GGUF file: it begins with " + quoted(beginning.substr(0, 4)) +
         " instead of 'GGUF'";
}

Status read_magic(const Input& input) {
  if (input.reader.size() == 0) return input.bad("is empty");
  std::string magic;
  if (!input.reader.read_text(magic, kMagic.size())) return input.cut("the first four bytes");
  if (magic != kMagic) return input.bad(describe_beginning(input.reader, magic));
  return {};
}

Status check_version(const Input& input, std::uint32_t version) {
  constexpr std::uint32_t kOldest = 2;
  constexpr std::uint32_t kNewest = 3;
  if (version >= kOldest && version <= kNewest) return {};
  if (version != 0 && (version & 0xFFFFU) == 0) {
    return input.bad("is a big-endian GGUF file; only little-endian ones are supported");
  }
  if (version > 0 && version < kOldest) {
    return input.bad("has GGUF version 1, which is no longer supported: convert the model again");
  }
  return input.bad("has GGUF version " + std::to_string(version) + "; this program knows 2 and 3");
}

Result<std::uint64_t> alignment_of(const Input& input, const Header& header) {
  const auto found = header.metadata.find("general.alignment");
  if (found == header.metadata.end()) return kDefaultAlignment;
  const auto* alignment = std::get_if<std::uint64_t>(&found->second);
  if (alignment == nullptr || !std::has_single_bit(*alignment)) {
    return input.bad("'general.alignment' is no power of two");
  }
  return *alignment;
}

}  // namespace

std::optional<std::string> Header::text(std::string_view key) const {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return std::nullopt;
  const auto* value = std::get_if<std::string>(&found->second);
  if (value == nullptr) return std::nullopt;
  return *value;
}

std::optional<std::uint64_t> Header::integer(std::string_view key) const {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return std::nullopt;
  if (const auto* natural = std::get_if<std::uint64_t>(&found->second)) return *natural;
  const auto* value = std::get_if<std::int64_t>(&found->second);
  if (value == nullptr || *value < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

std::optional<double> Header::number(std::string_view key) const {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return std::nullopt;
  if (const auto* value = std::get_if<double>(&found->second)) return *value;
  if (const auto* natural = std::get_if<std::uint64_t>(&found->second)) {
    return static_cast<double>(*natural);
  }
  if (const auto* integer = std::get_if<std::int64_t>(&found->second)) {
    return static_cast<double>(*integer);
  }
  return std::nullopt;
}

std::optional<bool> Header::truth(std::string_view key) const {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return std::nullopt;
  const auto* value = std::get_if<bool>(&found->second);
  if (value == nullptr) return std::nullopt;
  return *value;
}

Result<Header> parse_header(ByteSource& source, std::uint64_t file_bytes,
                            std::string_view file_name) {
  ByteReader reader(source, file_bytes, kMaxHeaderBytes);
  const Input input{reader, file_name};
  Header header;
  header.file_bytes = file_bytes;

  if (auto magic = read_magic(input); !magic) return fail(std::move(magic).error());
  if (!reader.read(header.version)) return input.cut("the version");
  if (auto version = check_version(input, header.version); !version) {
    return fail(std::move(version).error());
  }
  std::uint64_t tensor_count = 0;
  std::uint64_t key_count = 0;
  if (!reader.read(tensor_count) || !reader.read(key_count)) return input.cut("the counts");

  auto metadata = read_metadata(input, key_count);
  if (!metadata) return fail(std::move(metadata).error());
  header.metadata = std::move(*metadata);

  auto tensors = read_tensors(input, tensor_count);
  if (!tensors) return fail(std::move(tensors).error());
  header.tensors = std::move(*tensors);

  header.header_bytes = reader.position();
  header.hash = reader.hash();
  auto alignment = alignment_of(input, header);
  if (!alignment) return fail(std::move(alignment).error());
  header.data_offset = (header.header_bytes + *alignment - 1) / *alignment * *alignment;
  if (auto fits = check_tensors(input, header.tensors, *alignment, header.data_offset); !fits) {
    return fail(std::move(fits).error());
  }
  return header;
}

Result<Header> read_header(const std::string& path) {
  auto file = FileSource::open(path);
  if (!file) return fail(std::move(file).error());
  auto header = parse_header(*file, file->size(), shown_file_name(path));
  if (header) header->modified_unix_ms = file->modified_unix_ms();
  return header;
}

}  // namespace berth::gguf
