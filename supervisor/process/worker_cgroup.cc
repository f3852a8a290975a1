#include "supervisor/process/worker_cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <sstream>
#include <utility>

#include "common/errno_text.h"
#include "common/uuid.h"

namespace berth::process {
namespace {

constexpr const char* kSupervisor = "supervisor";
constexpr mode_t kMode = 0755;
// Of the names that wait for a sweep. What is forgotten the next start finds.
constexpr std::size_t kMostLeft = 1024;

bool write_text(int directory, const char* name, std::string_view text) {
  const UniqueFd file(::openat(directory, name, O_WRONLY | O_CLOEXEC));
  if (!file) return false;
  return ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// Empty where it cannot be read.
std::string read_text(int directory, const char* name) {
  constexpr std::size_t kMost = 65'536;
  const UniqueFd file(::openat(directory, name, O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> part{};
  while (file && text.size() < kMost) {
    const ssize_t got = ::read(file.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  return text;
}

UniqueFd open_directory(int at, const char* name) {
  return UniqueFd(::openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

std::vector<std::string> directories_in(int directory) {
  constexpr std::size_t kMost = 4096;
  std::vector<std::string> names;
  UniqueFd copy = open_directory(directory, ".");
  DIR* const stream = copy ? ::fdopendir(copy.get()) : nullptr;
  if (stream == nullptr) return names;
  copy.release();
  // NOLINTNEXTLINE(concurrency-mt-unsafe): a stream of this function's own
  for (const dirent* entry = ::readdir(stream); entry != nullptr && names.size() < kMost;
       entry = ::readdir(stream)) {  // NOLINT(concurrency-mt-unsafe)
    const std::string_view name(entry->d_name);
    if (entry->d_type == DT_DIR && name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(stream);
  return names;
}

// Removes a cgroup with those that a worker made below it. True when it is gone.
bool remove_tree(int at, const std::string& name, int depth = 0) {
  constexpr int kDeepest = 16;
  if (::unlinkat(at, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return true;
  const UniqueFd directory = open_directory(at, name.c_str());
  if (!directory || depth == kDeepest) return false;
  for (const std::string& one : directories_in(directory.get())) {
    if (!remove_tree(directory.get(), one, depth + 1)) return false;
  }
  return ::unlinkat(at, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT;
}

bool kill_all(int directory) {
  return write_text(directory, "cgroup.kill", "1");
}

bool is_populated(int directory) {
  return parse_populated(read_text(directory, "cgroup.events"));
}

// Any of its processes, for the report; 0: all are in cgroups below it.
pid_t one_process(int directory) {
  std::istringstream text(read_text(directory, "cgroup.procs"));
  pid_t pid = 0;
  text >> pid;
  return pid;
}

void leave(CgroupRoot& root, std::string name) {
  if (root.left.size() == kMostLeft) root.left.erase(root.left.begin());
  root.left.push_back(std::move(name));
}

// The value of a line "key 123".
std::optional<std::uint64_t> value_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ' ') continue;
    line.remove_prefix(key.size() + 1);
    std::uint64_t value = 0;
    const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (error == std::errc{} && rest == line.data() + line.size()) return value;
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> parse_oom_kills(std::string_view text) {
  return value_of(text, "oom_kill");
}

bool parse_populated(std::string_view text) {
  return value_of(text, "populated").value_or(0) != 0;
}

WorkerCgroup::~WorkerCgroup() {
  if (remove_tree(root_->directory.get(), name_)) return;
  if (kill() && remove_tree(root_->directory.get(), name_)) return;
  leave(*root_, name_);
}

bool WorkerCgroup::kill() const {
  return kill_all(directory_.get());
}

bool WorkerCgroup::populated() const {
  return is_populated(directory_.get());
}

std::optional<std::uint64_t> WorkerCgroup::oom_kills() const {
  return parse_oom_kills(read_text(directory_.get(), "memory.events"));
}

Result<std::unique_ptr<WorkerCgroups>> WorkerCgroups::open(const std::string& directory) {
  auto root = std::make_shared<CgroupRoot>();
  root->directory = open_directory(AT_FDCWD, directory.c_str());
  if (!root->directory) {
    return fail(Reason::kInternal, "open " + directory + ": " + errno_text(errno));
  }
  return std::unique_ptr<WorkerCgroups>(new WorkerCgroups(std::move(root)));
}

Result<std::unique_ptr<WorkerCgroups>> WorkerCgroups::take_over(const std::string& directory) {
  auto opened = open(directory);
  if (!opened) return opened;
  const int root = (*opened)->root_->directory.get();
  const auto step_failed = [&directory](const char* step) {
    return fail(Reason::kInternal,
                std::string(step) + " in " + directory + ": " + errno_text(errno));
  };
  if (::mkdirat(root, kSupervisor, kMode) != 0 && errno != EEXIST) return step_failed("mkdir");
  const UniqueFd own = open_directory(root, kSupervisor);
  // "0" is whoever writes it, with all its threads.
  if (!own || !write_text(own.get(), "cgroup.procs", "0")) {
    auto failed = step_failed("moving berthd");
    ::unlinkat(root, kSupervisor, AT_REMOVEDIR);
    return failed;
  }
  // Not there is as good as not allowed: then no death is proven by memory.events.
  static_cast<void>(write_text(root, "cgroup.subtree_control", "+memory"));
  return opened;
}

Result<std::unique_ptr<WorkerCgroup>> WorkerCgroups::make(const std::string& instance) {
  sweep();
  // Never a path.
  if (Uuid::parse(instance).is_nil()) {
    return fail(Reason::kInvalidArgument, "\"" + instance + "\" is no instance's id");
  }
  const int root = root_->directory.get();
  if (::mkdirat(root, instance.c_str(), kMode) != 0) {
    return fail(Reason::kInternal, "mkdir of a worker's cgroup: " + errno_text(errno));
  }
  UniqueFd directory = open_directory(root, instance.c_str());
  if (!directory) {
    const std::string problem = "open of a worker's cgroup: " + errno_text(errno);
    if (!remove_tree(root, instance)) leave(*root_, instance);
    return fail(Reason::kInternal, problem);
  }
  return std::make_unique<WorkerCgroup>(root_, instance, std::move(directory));
}

std::vector<MarkedLeftover> WorkerCgroups::clear_leftovers(std::chrono::milliseconds wait) {
  constexpr int kLookMs = 5;
  const auto deadline = std::chrono::steady_clock::now() + wait;
  struct Old {
    MarkedLeftover leftover;
    UniqueFd directory;
  };
  std::vector<Old> killed;
  const int root = root_->directory.get();
  for (const std::string& name : directories_in(root)) {
    if (Uuid::parse(name).is_nil()) continue;
    UniqueFd directory = open_directory(root, name.c_str());
    if (directory && is_populated(directory.get())) {
      const pid_t pid = one_process(directory.get());
      if (kill_all(directory.get())) {
        killed.push_back({{pid, name, LeftoverEnd::kStuck}, std::move(directory)});
        continue;
      }
    }
    if (!remove_tree(root, name)) leave(*root_, name);
  }
  std::vector<MarkedLeftover> found;
  for (Old& old : killed) {
    while (is_populated(old.directory.get()) && std::chrono::steady_clock::now() < deadline) {
      ::poll(nullptr, 0, kLookMs);
    }
    if (!is_populated(old.directory.get())) old.leftover.end = LeftoverEnd::kKilled;
    if (!remove_tree(root, old.leftover.instance)) leave(*root_, old.leftover.instance);
    found.push_back(std::move(old.leftover));
  }
  return found;
}

void WorkerCgroups::sweep() {
  std::erase_if(root_->left, [this](const std::string& name) {
    return remove_tree(root_->directory.get(), name);
  });
}

}  // namespace berth::process
