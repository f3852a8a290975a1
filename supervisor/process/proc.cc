#include "supervisor/process/proc.h"

#include <dirent.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <memory>
#include <string_view>
#include <type_traits>

#include "common/kernel_file.h"

namespace berth::process {
namespace {

constexpr std::size_t kMostEnvironment = 1024UL * 1024UL;

// The next blank-separated word; takes it off `text`.
std::string_view next_word(std::string_view& text) {
  const std::size_t start = text.find_first_not_of(" \n");
  if (start == std::string_view::npos) {
    text = {};
    return {};
  }
  text.remove_prefix(start);
  const std::size_t end = text.find_first_of(" \n");
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(word.size());
  return word;
}

template <typename Number>
std::optional<Number> parse_number(std::string_view word) {
  Number number{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return number;
}

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};

}  // namespace

std::optional<ProcessStat> parse_stat(std::string_view text) {
  // The name stands in parentheses and may itself hold any character.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  text.remove_prefix(name_end + 1);
  constexpr std::size_t kFirst = 3;
  constexpr std::size_t kLast = 24;
  std::array<std::string_view, kLast + 1> field{};
  for (std::size_t i = kFirst; i <= kLast; ++i) field[i] = next_word(text);

  if (field[3].size() != 1) return std::nullopt;
  ProcessStat stat;
  stat.state = field[3].front();
  bool whole = true;
  const auto read = [&whole](std::string_view word, auto& number) {
    const auto value = parse_number<std::remove_reference_t<decltype(number)>>(word);
    whole = whole && value;
    number = value.value_or(0);
  };
  read(field[4], stat.parent);
  read(field[5], stat.group);
  for (std::size_t i = 14; i <= 17; ++i) {
    std::uint64_t ticks = 0;
    read(field[i], ticks);
    stat.cpu_ticks += ticks;
  }
  read(field[20], stat.threads);
  read(field[22], stat.start_ticks);
  read(field[24], stat.resident_pages);
  if (!whole) return std::nullopt;
  return stat;
}

std::optional<ProcessStat> read_stat(pid_t pid) {
  const auto text = read_kernel_file("/proc/" + std::to_string(pid) + "/stat");
  return text ? parse_stat(*text) : std::nullopt;
}

std::string environment_of(pid_t pid) {
  return read_kernel_file("/proc/" + std::to_string(pid) + "/environ", kMostEnvironment)
      .value_or(std::string());
}

std::vector<pid_t> numbered_entries(const std::string& path) {
  std::vector<pid_t> numbers;
  const std::unique_ptr<DIR, CloseDir> dir(::opendir(path.c_str()));
  if (!dir) return numbers;
  // readdir() is safe where, as here, no other thread uses the same stream.
  while (const dirent* entry = ::readdir(dir.get())) {  // NOLINT(concurrency-mt-unsafe)
    if (const auto number = parse_number<pid_t>(&entry->d_name[0])) numbers.push_back(*number);
  }
  return numbers;
}

std::vector<pid_t> children_of(pid_t pid) {
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  std::vector<pid_t> children;
  bool listed = false;
  for (const pid_t task : numbered_entries(tasks)) {
    const auto text = read_kernel_file(tasks + "/" + std::to_string(task) + "/children");
    if (!text) continue;
    listed = true;
    std::string_view rest = *text;
    while (const auto child = parse_number<pid_t>(next_word(rest))) children.push_back(*child);
  }
  if (listed) return children;

  // A kernel without CONFIG_PROC_CHILDREN: ask every process who its parent is.
  for (const pid_t other : numbered_entries("/proc")) {
    const auto stat = read_stat(other);
    if (stat && stat->parent == pid) children.push_back(other);
  }
  return children;
}

Result<std::string> boot_id() {
  constexpr const char* kPath = "/proc/sys/kernel/random/boot_id";
  const auto text = read_kernel_file(kPath);
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  const std::string_view id = next_word(rest);
  if (id.empty()) return fail(Reason::kInternal, std::string(kPath) + " cannot be read.");
  return std::string(id);
}

}  // namespace berth::process
