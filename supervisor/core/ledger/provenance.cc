#include "supervisor/core/ledger/provenance.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/named_rows.h"
#include "common/text.h"
#include "common/units.h"

// No library to link for one function.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace berth::core {
namespace {

struct Row {
  std::string_view name;
  std::string_view words;
};

constexpr std::array kRows = {
    Row{"runtime", "the worker's runtime"},
    Row{"files", "the model's files"},
    Row{"budget", "the memory budget"},
    Row{"sequences", "the number of sequences"},
    Row{"window", "the served window"},
    Row{"kv_types", "the type of the KV cache"},
    Row{"devices", "the devices or their drivers"},
    Row{"launch", "the launch arguments or settings"},
    Row{"program", "the program"},
};
static_assert(kRows.size() == kProvenanceFields);
static_assert(kRows.size() == static_cast<std::size_t>(ProvenanceField::kProgram) + 1);

// What is said of a field to an operator is one short line.
constexpr std::size_t kWordsBytes = 120;

// --- texts. Parts are joined by '|', which stands as "\p" within one; a line feed as "\n". Names
// of files need not be UTF-8: the bytes of one that is not stand as "\xHH".

void append_byte(std::string& out, unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += "\\x";
  out += kDigits[byte >> 4U];
  out += kDigits[byte & 0xFU];
}

void append_escaped(std::string& out, std::string_view part) {
  const bool text = !first_invalid_utf8(part);
  for (const char c : part) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '|') {
      out += "\\p";
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte >= 0x80 && !text) {
      append_byte(out, byte);
    } else {
      out += c;
    }
  }
}

// Takes one escaped character off the front of `text`, whose backslash is gone already.
std::optional<char> take_escaped(std::string_view& text) {
  if (text.empty()) return std::nullopt;
  const char kind = text.front();
  text.remove_prefix(1);
  if (kind == '\\') return '\\';
  if (kind == 'p') return '|';
  if (kind == 'n') return '\n';
  if (kind != 'x' || text.size() < 2) return std::nullopt;
  unsigned byte = 0;
  const auto read = std::from_chars(text.data(), text.data() + 2, byte, 16);
  if (read.ec != std::errc() || read.ptr != text.data() + 2) return std::nullopt;
  text.remove_prefix(2);
  return static_cast<char>(byte);
}

// The front of every text says that the field is known, also where it has no parts.
constexpr char kKnown = '+';

class Writer {
 public:
  void add(std::string_view part) {
    text_ += '|';
    append_escaped(text_, part);
  }
  template <typename Number>
  void add_number(Number number) {
    text_ += '|';
    text_ += std::to_string(number);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_ = std::string(1, kKnown);
};

// The parts of a text; absent where it is none of ours.
std::optional<std::vector<std::string>> parts_of(std::string_view text) {
  if (text.empty() || text.front() != kKnown) return std::nullopt;
  text.remove_prefix(1);
  std::vector<std::string> parts;
  while (!text.empty()) {
    const char c = text.front();
    text.remove_prefix(1);
    if (c == '|') {
      parts.emplace_back();
      continue;
    }
    if (parts.empty()) return std::nullopt;
    const std::optional<char> plain = c == '\\' ? take_escaped(text) : c;
    if (!plain) return std::nullopt;
    parts.back() += *plain;
  }
  return parts;
}

template <typename Number>
bool read_number(std::string_view text, Number& out) {
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, out);
  return read.ec == std::errc() && read.ptr == end;
}

template <typename Number>
std::optional<Number> number_of(std::string_view text) {
  const auto parts = parts_of(text);
  Number number{};
  if (!parts || parts->size() != 1 || !read_number(parts->front(), number)) return std::nullopt;
  return number;
}

template <typename Number>
std::string number_text(const std::optional<Number>& number) {
  if (!number) return {};
  Writer writer;
  writer.add_number(*number);
  return writer.take();
}

// Of FileIdentity and ProgramFile: a path and three numbers, the last of which has another meaning.
template <typename File>
std::string files_text(const std::optional<std::vector<File>>& files, std::uint64_t File::*last) {
  if (!files) return {};
  Writer writer;
  for (const File& file : *files) {
    writer.add(file.path);
    writer.add_number(file.size);
    writer.add_number(file.modified_ns);
    writer.add_number(file.*last);
  }
  return writer.take();
}

template <typename File>
std::optional<std::vector<File>> files_of(std::string_view text, std::uint64_t File::*last) {
  constexpr std::size_t kParts = 4;
  auto parts = parts_of(text);
  if (!parts || parts->size() % kParts != 0) return std::nullopt;
  std::vector<File> files;
  for (std::size_t i = 0; i < parts->size(); i += kParts) {
    File file;
    file.path = std::move(parts->at(i));
    if (!read_number(parts->at(i + 1), file.size) ||
        !read_number(parts->at(i + 2), file.modified_ns) ||
        !read_number(parts->at(i + 3), file.*last)) {
      return std::nullopt;
    }
    files.push_back(std::move(file));
  }
  return files;
}

std::string budget_text(const std::optional<std::map<std::string, std::uint64_t>>& budget) {
  if (!budget) return {};
  Writer writer;
  for (const auto& [domain, bytes] : *budget) {
    writer.add(domain);
    writer.add_number(bytes);
  }
  return writer.take();
}

std::optional<std::map<std::string, std::uint64_t>> budget_of(std::string_view text) {
  auto parts = parts_of(text);
  if (!parts || parts->size() % 2 != 0) return std::nullopt;
  std::map<std::string, std::uint64_t> budget;
  for (std::size_t i = 0; i < parts->size(); i += 2) {
    if (!read_number(parts->at(i + 1), budget[parts->at(i)])) return std::nullopt;
  }
  return budget;
}

std::string devices_text(const std::optional<std::vector<DeviceIdentity>>& devices) {
  if (!devices) return {};
  Writer writer;
  for (const DeviceIdentity& device : *devices) {
    writer.add(device.id);
    writer.add(device.driver);
  }
  return writer.take();
}

std::optional<std::vector<DeviceIdentity>> devices_of(std::string_view text) {
  auto parts = parts_of(text);
  if (!parts || parts->size() % 2 != 0) return std::nullopt;
  std::vector<DeviceIdentity> devices;
  for (std::size_t i = 0; i < parts->size(); i += 2) {
    devices.push_back({std::move(parts->at(i)), std::move(parts->at(i + 1))});
  }
  return devices;
}

// --- words

std::string words(std::string_view text) {
  return printable_line(text, kWordsBytes);
}

MovedField moved(ProvenanceField field, std::string_view was = {}, std::string_view now = {}) {
  return {field, words(was), words(now)};
}

std::string count_of_files(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " file" : " files");
}

// In bytes where the rounded forms look alike.
MovedField moved_size(ProvenanceField field, std::uint64_t was, std::uint64_t now) {
  std::string from = format_bytes(was);
  std::string to = format_bytes(now);
  if (from == to) {
    from = std::to_string(was) + " B";
    to = std::to_string(now) + " B";
  }
  return moved(field, from, to);
}

MovedField moved_files(const std::vector<FileIdentity>& old, const std::vector<FileIdentity>& now) {
  constexpr auto kField = ProvenanceField::kFiles;
  if (old.size() != now.size()) {
    return moved(kField, count_of_files(old.size()), count_of_files(now.size()));
  }
  const auto [was, is] = std::ranges::mismatch(old, now);
  if (was->path != is->path) return moved(kField, "the file of before", "another file");
  if (was->size != is->size) return moved_size(kField, was->size, is->size);
  if (was->header_hash != is->header_hash) return moved(kField, "another header", "a new header");
  return moved(kField, "older", "written again");
}

bool is_there(const ProgramFile& file) {
  return file.inode != 0;
}

MovedField moved_program(const std::vector<ProgramFile>& old, const std::vector<ProgramFile>& now) {
  constexpr auto kField = ProvenanceField::kProgram;
  const auto [was, is] = std::ranges::mismatch(old, now);
  if (was == old.end() || is == now.end()) {
    return moved(kField, count_of_files(old.size()), count_of_files(now.size()));
  }
  if (is_there(*was) != is_there(*is)) {
    return moved(kField, is_there(*was) ? "there" : "not there",
                 is_there(*is) ? "there" : "not there");
  }
  if (old.size() != now.size()) {
    return moved(kField, count_of_files(old.size()), count_of_files(now.size()));
  }
  if (was->path != is->path) return moved(kField, "the file of before", "another file");
  if (was->size != is->size) return moved_size(kField, was->size, is->size);
  return moved(kField, "older", "written again");
}

// Of a domain that only one of them knows nothing is known: its device may have been listed late.
std::optional<MovedField> moved_budget(const std::map<std::string, std::uint64_t>& old,
                                       const std::map<std::string, std::uint64_t>& now) {
  for (const auto& [domain, bytes] : old) {
    const auto at = now.find(domain);
    if (at == now.end() || at->second == bytes) continue;
    return moved(ProvenanceField::kBudget, domain + " " + format_bytes(bytes),
                 domain + " " + format_bytes(at->second));
  }
  return std::nullopt;
}

std::string devices_words(const std::vector<DeviceIdentity>& devices) {
  if (devices.empty()) return "the processor";
  std::string text;
  for (const DeviceIdentity& device : devices) {
    if (!text.empty()) text += ", ";
    text += device.id;
    if (!device.driver.empty()) text += " (" + device.driver + ")";
  }
  return text;
}

bool devices_differ(const std::optional<std::vector<DeviceIdentity>>& old,
                    const std::optional<std::vector<DeviceIdentity>>& now) {
  if (!old || !now) return false;
  return !std::ranges::equal(*old, *now, [](const DeviceIdentity& was, const DeviceIdentity& is) {
    const bool known = !was.driver.empty() && !is.driver.empty();
    return was.id == is.id && (!known || was.driver == is.driver);
  });
}

template <typename T>
bool differs(const std::optional<T>& old, const std::optional<T>& now) {
  return old && now && *old != *now;
}

// Strings are hashed with their length, so that no two lists look alike.
void update(XXH3_state_t& state, std::string_view text) {
  const std::uint64_t size = text.size();
  XXH3_64bits_update(&state, &size, sizeof size);
  XXH3_64bits_update(&state, text.data(), text.size());
}

void update(XXH3_state_t& state, const std::vector<std::string>& list) {
  const std::uint64_t size = list.size();
  XXH3_64bits_update(&state, &size, sizeof size);
  for (const std::string& text : list) update(state, text);
}

}  // namespace

std::string_view provenance_field_name(ProvenanceField field) {
  return kRows.at(static_cast<std::size_t>(field)).name;
}

std::optional<ProvenanceField> provenance_field_from_name(std::string_view name) {
  return value_named<ProvenanceField>(kRows, name);
}

std::uint64_t launch_hash(const std::vector<std::string>& argv,
                          const std::vector<std::string>& environment,
                          std::string_view chat_template,
                          const std::vector<std::string>& settings) {
  std::vector<std::string> sorted = environment;
  std::ranges::sort(sorted);
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  update(state, argv);
  update(state, sorted);
  update(state, chat_template);
  if (!settings.empty()) update(state, settings);
  return XXH3_64bits_digest(&state);
}

std::string provenance_hash(const Provenance& provenance) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  for (const std::string& text : to_texts(provenance)) update(state, text);
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016" PRIx64,
                static_cast<std::uint64_t>(XXH3_64bits_digest(&state)));
  return digits.data();
}

std::string to_string(const MovedField& moved) {
  std::string text(kRows.at(static_cast<std::size_t>(moved.field)).words);
  text += " moved";
  if (!moved.was.empty() || !moved.now.empty()) text += ": " + moved.was + " -> " + moved.now;
  return text;
}

std::optional<MovedField> moved_field(const Provenance& old, const Provenance& now) {
  if (differs(old.runtime, now.runtime)) {
    return moved(ProvenanceField::kRuntime, *old.runtime, *now.runtime);
  }
  if (differs(old.files, now.files)) return moved_files(*old.files, *now.files);
  if (differs(old.budget, now.budget)) {
    if (auto budget = moved_budget(*old.budget, *now.budget)) return budget;
  }
  if (differs(old.sequences, now.sequences)) {
    return moved(ProvenanceField::kSequences, std::to_string(*old.sequences),
                 std::to_string(*now.sequences));
  }
  if (differs(old.window, now.window)) {
    return moved(ProvenanceField::kWindow, std::to_string(*old.window),
                 std::to_string(*now.window));
  }
  if (differs(old.kv_types, now.kv_types)) {
    const auto say = [](const KvTypes& types) { return types.keys + "/" + types.values; };
    return moved(ProvenanceField::kKvTypes, say(*old.kv_types), say(*now.kv_types));
  }
  if (devices_differ(old.devices, now.devices)) {
    return moved(ProvenanceField::kDevices, devices_words(*old.devices),
                 devices_words(*now.devices));
  }
  if (differs(old.launch_hash, now.launch_hash)) return moved(ProvenanceField::kLaunch);
  if (differs(old.program, now.program)) return moved_program(*old.program, *now.program);
  return std::nullopt;
}

bool only_arguments_moved(const Provenance& old, const Provenance& now) {
  return differs(old.program, now.program) && !old.program->empty() && !now.program->empty() &&
         old.program->front() == now.program->front();
}

std::optional<std::vector<std::string>> arguments_written(const Provenance& old,
                                                          const Provenance& now, WallTime from,
                                                          WallTime to) {
  if (!only_arguments_moved(old, now)) return std::nullopt;
  // Both ends are whole milliseconds, the last of which may have gone on.
  const auto first = std::chrono::nanoseconds(from.time_since_epoch()).count();
  const auto last =
      std::chrono::nanoseconds(to.time_since_epoch() + std::chrono::milliseconds(1)).count();
  for (const ProgramFile& was : *old.program) {
    // One that is gone was not written.
    if (!std::ranges::count(*now.program, was.path, &ProgramFile::path)) return std::nullopt;
  }
  std::vector<std::string> written;
  for (const ProgramFile& is : *now.program) {
    if (std::ranges::count(*old.program, is)) continue;
    if (is.modified_ns < first || is.modified_ns >= last) return std::nullopt;
    written.push_back(is.path);
  }
  return written;
}

ProvenanceTexts to_texts(const Provenance& provenance) {
  ProvenanceTexts texts;
  const auto text_of = [&texts](ProvenanceField field) -> std::string& {
    return texts.at(static_cast<std::size_t>(field));
  };
  if (provenance.runtime) {
    Writer writer;
    writer.add(*provenance.runtime);
    text_of(ProvenanceField::kRuntime) = writer.take();
  }
  text_of(ProvenanceField::kFiles) = files_text(provenance.files, &FileIdentity::header_hash);
  text_of(ProvenanceField::kBudget) = budget_text(provenance.budget);
  text_of(ProvenanceField::kSequences) = number_text(provenance.sequences);
  text_of(ProvenanceField::kWindow) = number_text(provenance.window);
  if (provenance.kv_types) {
    Writer writer;
    writer.add(provenance.kv_types->keys);
    writer.add(provenance.kv_types->values);
    text_of(ProvenanceField::kKvTypes) = writer.take();
  }
  text_of(ProvenanceField::kDevices) = devices_text(provenance.devices);
  text_of(ProvenanceField::kLaunch) = number_text(provenance.launch_hash);
  text_of(ProvenanceField::kProgram) = files_text(provenance.program, &ProgramFile::inode);
  return texts;
}

Provenance provenance_from_texts(const ProvenanceTexts& texts) {
  const auto text_of = [&texts](ProvenanceField field) -> const std::string& {
    return texts.at(static_cast<std::size_t>(field));
  };
  Provenance provenance;
  if (auto parts = parts_of(text_of(ProvenanceField::kRuntime)); parts && parts->size() == 1) {
    provenance.runtime = std::move(parts->front());
  }
  provenance.files = files_of(text_of(ProvenanceField::kFiles), &FileIdentity::header_hash);
  provenance.budget = budget_of(text_of(ProvenanceField::kBudget));
  provenance.sequences = number_of<std::uint32_t>(text_of(ProvenanceField::kSequences));
  provenance.window = number_of<std::uint32_t>(text_of(ProvenanceField::kWindow));
  if (auto parts = parts_of(text_of(ProvenanceField::kKvTypes)); parts && parts->size() == 2) {
    provenance.kv_types = KvTypes{std::move(parts->front()), std::move(parts->back())};
  }
  provenance.devices = devices_of(text_of(ProvenanceField::kDevices));
  provenance.launch_hash = number_of<std::uint64_t>(text_of(ProvenanceField::kLaunch));
  provenance.program = files_of(text_of(ProvenanceField::kProgram), &ProgramFile::inode);
  return provenance;
}

}  // namespace berth::core
