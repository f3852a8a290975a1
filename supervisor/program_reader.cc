#include "supervisor/program_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "common/fd.h"
#include "common/text.h"
#include "common/units.h"
#include "supervisor/process/launch_error.h"

namespace berth {
namespace {

constexpr std::size_t kShownBytes = 200;

std::string quoted(const std::string& name) {
  return "\"" + printable_line(name, kShownBytes) + "\"";
}

enum class Seen : std::uint8_t { kProgram, kOther, kNothing };

// Errors: those of process::launch_error() that pass; what cannot be looked at for a reason that
// stays is nothing.
Result<Seen> look_at(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    Error error = process::launch_error("stat " + path, errno);
    if (error.extras) return fail(std::move(error));
    return Seen::kNothing;
  }
  const bool executable = S_ISREG(info.st_mode) && ::access(path.c_str(), X_OK) == 0;
  return executable ? Seen::kProgram : Seen::kOther;
}

bool is_path(const std::string& name) {
  return name.find('/') != std::string::npos;
}

Result<std::string> look_up(const ProgramPlace& place) {
  std::optional<Error> passing;
  bool other = false;
  for (const std::string& path : paths_of(place)) {
    const Result<Seen> seen = look_at(path);
    if (!seen) {
      passing = seen.error();
    } else if (*seen == Seen::kProgram) {
      return path;
    } else {
      other = *seen == Seen::kOther;
    }
  }
  // It may be where nobody could look.
  if (passing) return fail(*std::move(passing));
  if (!is_path(place.name)) {
    return fail(Reason::kLoadFailed,
                "no such program: " + quoted(place.name) + "; it is in no directory of PATH");
  }
  return fail(Reason::kLoadFailed,
              std::string(other ? "no program that can be executed: " : "no such program: ") +
                  quoted(place.name));
}

// What cannot be read is execve's business.
void touch_program(std::string path) {
  constexpr int kMostInterpreters = 4;  // more are ELOOP
  for (int i = 0; i <= kMostInterpreters; ++i) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (!file) return;
    std::array<char, 4096> part{};
    const ssize_t got = ::pread(file.get(), part.data(), part.size(), 0);
    if (got <= 0) return;
    std::string_view line(part.data(), static_cast<std::size_t>(got));
    if (!line.starts_with("#!")) return;
    line = line.substr(2, line.find('\n') - 2);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    path = line.substr(0, line.find_first_of(" \t"));
    if (!path.starts_with('/')) return;
  }
}

// Detached: nobody can end a thread that a file system holds, so nobody may wait for it either.
Status run_on_a_thread(const ProgramPlace& /*place*/, std::function<void()> work) {
  try {
    std::thread(std::move(work)).detach();
  } catch (const std::system_error& failed) {
    return fail(process::launch_error("starting a thread", failed.code().value()));
  }
  return {};
}

ProgramReader::Options with_threads(ProgramReader::Options options) {
  if (!options.run_alone) options.run_alone = run_on_a_thread;
  return options;
}

}  // namespace

ProgramPlace program_place(const std::string& name, const std::string& directory,
                           const std::vector<std::string>& environment) {
  constexpr std::string_view kPath = "PATH=";
  const auto path = std::ranges::find_if(
      environment, [kPath](const std::string& variable) { return variable.starts_with(kPath); });
  return {name, directory, path == environment.end() ? "" : path->substr(kPath.size())};
}

std::vector<std::string> paths_of(const ProgramPlace& place) {
  if (is_path(place.name)) {
    const std::filesystem::path from = place.directory.empty() ? "/" : place.directory;
    return {(from / place.name).lexically_normal().string()};
  }
  std::vector<std::string> paths;
  for (std::size_t start = 0; start <= place.path.size();) {
    const std::size_t end = std::min(place.path.find(':', start), place.path.size());
    const std::filesystem::path folder = place.path.substr(start, end - start);
    if (folder.is_absolute()) paths.push_back((folder / place.name).string());
    start = end + 1;
  }
  return paths;
}

Result<std::string> find_program(const ProgramPlace& place) {
  if (!place.directory.empty()) {
    struct stat info {};
    const int problem = ::stat(place.directory.c_str(), &info) == 0 ? 0 : errno;
    Error error = process::launch_error("stat " + place.directory, problem);
    if (error.extras) return fail(std::move(error));
    if (problem != 0 || !S_ISDIR(info.st_mode)) {
      return fail(Reason::kLoadFailed, "the working directory is not there");
    }
  }
  Result<std::string> program = look_up(place);
  if (program) touch_program(*program);
  return program;
}

struct ProgramReader::Link {
  std::mutex mutex;
  ProgramReader* reader = nullptr;  // null: it is gone

  // From a thread: brings what it found to the core strand, if that still wants it.
  static void deliver(const std::shared_ptr<Link>& link, const std::shared_ptr<Look>& look,
                      Result<std::string> found) {
    const std::lock_guard lock(link->mutex);
    if (link->reader == nullptr) return;
    link->reader->clock_.post([link, look, found = std::move(found)] {
      // Written on the core strand alone, which this is.
      if (link->reader != nullptr) link->reader->end(look, found);
    });
  }
};

ProgramReader::ProgramReader(Clock& clock, Options options)
    : clock_(clock), options_(with_threads(std::move(options))), link_(std::make_shared<Link>()) {
  link_->reader = this;
}

ProgramReader::~ProgramReader() {
  const std::lock_guard lock(link_->mutex);
  link_->reader = nullptr;
  // A thread may hold its look for long; nothing of the core strand stays in it.
  for (const std::shared_ptr<Look>& look : looks_) {
    look->deadline.reset();
    look->waiters.clear();
  }
}

void ProgramReader::read(const ProgramPlace& place, std::function<void(Result<std::string>)> done) {
  const auto at = std::ranges::find(looks_, place, [](const auto& look) { return look->place; });
  if (at != looks_.end() && (*at)->late) {
    clock_.post([done = std::move(done), error = too_late(**at)] { done(fail(error)); });
    return;
  }
  if (at != looks_.end()) {
    (*at)->waiters.push_back(std::move(done));
    return;
  }
  const auto look = std::make_shared<Look>();
  look->place = place;
  look->since = clock_.now();
  look->waiters.push_back(std::move(done));
  // The timer is the look's own.
  look->deadline = clock_.sleep_for(options_.deadline, [this, weak = std::weak_ptr<Look>(look)] {
    if (const auto self = weak.lock()) give_up(self);
  });
  looks_.push_back(look);
  begin_some();
}

void ProgramReader::begin_some() {
  const auto running = std::ranges::count_if(looks_, [](const auto& look) { return look->runs; });
  std::size_t free = options_.most - std::min(static_cast<std::size_t>(running), options_.most);
  const std::vector<std::shared_ptr<Look>> looks = looks_;  // end() takes from it
  for (const std::shared_ptr<Look>& look : looks) {
    if (look->runs) continue;
    if (free == 0) return;
    if (Status begun = begin(look); !begun) {
      // From here on as if a thread had said so.
      clock_.post([link = link_, look, error = begun.error()] {
        if (link->reader != nullptr) link->reader->end(look, fail(error));
      });
    }
    --free;
  }
}

Status ProgramReader::begin(const std::shared_ptr<Look>& look) {
  look->runs = true;
  auto work = [link = link_, look, find = options_.find, place = look->place] {
    Link::deliver(link, look, find(place));
  };
  return options_.run_alone(look->place, std::move(work));
}

void ProgramReader::end(const std::shared_ptr<Look>& look, const Result<std::string>& found) {
  look->deadline.reset();
  std::erase(looks_, look);
  for (const auto& done : std::exchange(look->waiters, {})) done(found);
  begin_some();
}

void ProgramReader::give_up(const std::shared_ptr<Look>& look) {
  look->deadline.reset();
  look->late = look->runs;
  if (!look->runs) std::erase(looks_, look);
  const Error error = too_late(*look);
  for (const auto& done : std::exchange(look->waiters, {})) done(fail(error));
}

Error ProgramReader::too_late(const Look& look) const {
  const auto waited = std::chrono::floor<std::chrono::seconds>(clock_.now() - look.since);
  std::string reason = "the program " + quoted(look.place.name);
  if (look.runs) {
    reason += " cannot be read: its file system has not answered for ";
  } else {
    reason += " was not looked for: other file systems that do not answer hold all threads for ";
  }
  return process::timeout_error(reason + format_duration_human(waited));
}

}  // namespace berth
