#include "supervisor/process/process_tree.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/fd.h"
#include "supervisor/process/proc.h"

namespace berth::process {
namespace {

// A file of /proc with room to spare: 52 numbers, seven lines, some hundred children.
using Buffer = std::array<char, 4096>;

std::string_view read_at(int directory, const char* name, Buffer& buffer) {
  const UniqueFd file(::openat(directory, name, O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  std::size_t size = 0;
  while (size < buffer.size()) {
    const ssize_t got = ::read(file.get(), buffer.data() + size, buffer.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;  // gone meanwhile: what there is of it is of no use to anybody
    size += static_cast<std::size_t>(got);
  }
  return {buffer.data(), size};
}

// Takes the next number off `text`.
std::optional<std::uint64_t> next_number(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// A line `key: 123`.
std::optional<std::uint64_t> io_field(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ':') continue;
    line.remove_prefix(key.size() + 1);
    return next_number(line);
  }
  return std::nullopt;
}

void add_io(std::string_view text, TreeUse& use) {
  const auto storage = io_field(text, "read_bytes");
  const auto read = io_field(text, "rchar");
  if (storage) use.storage_bytes = use.storage_bytes.value_or(0) + *storage;
  if (read) use.read_bytes = use.read_bytes.value_or(0) + *read;
}

Duration ticks_to_time(std::uint64_t ticks) {
  static const auto kPerSecond = std::max<long>(::sysconf(_SC_CLK_TCK), 1);
  return std::chrono::nanoseconds(std::chrono::seconds(1)) / kPerSecond *
         static_cast<std::int64_t>(ticks);
}

// The children of a process whose directory of /proc is open.
void append_children(int directory, pid_t pid, std::uint64_t threads,
                     std::vector<pid_t>& children) {
  if (threads > 1) {
    const std::vector<pid_t> all = children_of(pid);
    children.insert(children.end(), all.begin(), all.end());
    return;
  }
  const std::string name = "task/" + std::to_string(pid) + "/children";
  const UniqueFd file(::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    if (errno != ENOENT || ::faccessat(directory, "task", F_OK, 0) != 0) return;
    const std::vector<pid_t> all = children_of(pid);  // a kernel without these files
    children.insert(children.end(), all.begin(), all.end());
    return;
  }
  Buffer buffer{};
  std::string text;
  while (text.size() < ProcessTree::kMostProcesses * 8) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  std::string_view rest = text;
  while (const auto child = next_number(rest)) children.push_back(static_cast<pid_t>(*child));
}

}  // namespace

ProcessTree::ProcessTree(pid_t root, std::uint64_t start_ticks, pid_t reaper)
    : root_(root), root_start_(start_ticks), reaper_(reaper) {}

std::optional<TreeUse> ProcessTree::sample() {
  static const auto kPageBytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  TreeUse use;
  std::vector<Known> seen;
  std::vector<pid_t> queue = {root_};
  add_orphans(queue);
  members_.clear();
  for (std::size_t next = 0; next < queue.size(); ++next) {
    if (members_.size() >= kMostProcesses) {
      use.complete = false;
      break;
    }
    const pid_t pid = queue[next];
    // Seen twice where it lost its parent while we looked.
    if (std::ranges::find(members_, pid) != members_.end()) continue;
    const std::string path = "/proc/" + std::to_string(pid);
    const UniqueFd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory) continue;
    Buffer buffer{};
    const auto stat = parse_stat(read_at(directory.get(), "stat", buffer));
    if (!stat || (pid == root_ && stat->start_ticks != root_start_)) continue;
    members_.push_back(pid);
    seen.push_back({pid, stat->start_ticks});
    use.cpu_time += ticks_to_time(stat->cpu_ticks);
    use.resident_bytes += stat->resident_pages * kPageBytes;
    add_io(read_at(directory.get(), "io", buffer), use);
    append_children(directory.get(), pid, stat->threads, queue);
  }
  known_ = std::move(seen);
  if (members_.empty()) return std::nullopt;
  use.processes = static_cast<std::uint32_t>(members_.size());
  return use;
}

void ProcessTree::add_orphans(std::vector<pid_t>& queue) const {
  for (const pid_t child : children_of(reaper_)) {
    if (child == root_) continue;
    const auto stat = read_stat(child);
    if (stat && (stat->group == root_ || knows(child, stat->start_ticks))) queue.push_back(child);
  }
}

bool ProcessTree::knows(pid_t pid, std::uint64_t start_ticks) const {
  return std::ranges::any_of(known_, [&](const Known& known) {
    return known.pid == pid && known.start_ticks == start_ticks;
  });
}

}  // namespace berth::process
