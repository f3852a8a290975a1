#include "supervisor/cli/chat/history_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/errno_text.h"
#include "common/fd.h"

namespace berth::cli {
namespace {

std::string escaped(std::string_view entry) {
  std::string out;
  for (const char c : entry) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c != '\r') {
      out.push_back(c);
    }
  }
  out.push_back('\n');
  return out;
}

std::string unescaped(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size()) {
      ++i;
      out.push_back(line[i] == 'n' ? '\n' : line[i]);
    } else {
      out.push_back(line[i]);
    }
  }
  return out;
}

}  // namespace

HistoryFile::HistoryFile(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  std::error_code error;
  std::filesystem::create_directories(folder.parent_path(), error);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    problem_ = "cannot make " + folder.string() + ": " + errno_text(errno);
    return;
  }
  read();
}

void HistoryFile::read() {
  const UniqueFd file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) {
    if (errno != ENOENT) problem_ = "cannot read " + path_ + ": " + errno_text(errno);
    return;
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    problem_ = path_ + " is no regular file";
    return;
  }
  // A file of another make may be of any size: only its end is of use.
  const auto size = static_cast<std::size_t>(status.st_size);
  const std::size_t limit = 8 * kMostBytes;
  if (size > limit && ::lseek(file.get(), static_cast<off_t>(size - limit), SEEK_SET) < 0) return;
  const ReadAll all = read_all(file.get(), 2 * limit);
  if (!all.error.empty()) {
    problem_ = "cannot read " + path_ + ": " + all.error;
    return;
  }
  std::string_view rest = all.text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (end > 0 && end <= 2 * kMostEntryBytes) entries_.push_back(unescaped(rest.substr(0, end)));
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
  std::size_t first = entries_.size() > kMostEntries ? entries_.size() - kMostEntries : 0;
  std::size_t bytes = 0;
  for (std::size_t i = entries_.size(); i > first; --i) {
    bytes += entries_[i - 1].size() + 1;
    if (bytes > kMostBytes) {
      first = i;
      break;
    }
  }
  entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(first));
  if (first > 0 || size > limit) rewrite();
}

void HistoryFile::rewrite() {
  std::string temporary = path_ + ".XXXXXX";
  const UniqueFd file(::mkstemp(temporary.data()));  // mode 0600
  if (!file) return;
  FdOutput output(file.get());
  for (const std::string& entry : entries_) output.write(escaped(entry));
  if (output.failed() || ::rename(temporary.c_str(), path_.c_str()) != 0) {
    ::unlink(temporary.c_str());
  }
}

void HistoryFile::add(const std::string& entry) {
  if (entry.find_first_not_of(" \t\n") == std::string::npos) return;
  if (entry.size() > kMostEntryBytes || (!entries_.empty() && entries_.back() == entry)) return;
  entries_.push_back(entry);
  if (path_.empty() || !problem_.empty()) return;
  const UniqueFd file(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (!file) {
    problem_ = "cannot write " + path_ + ": " + errno_text(errno);
    return;
  }
  ::fchmod(file.get(), 0600);
  FdOutput output(file.get());
  output.write(escaped(entry));
  if (const auto failed = output.failed()) problem_ = "cannot write " + path_ + ": " + *failed;
}

std::string history_path(const Environment& environment) {
  if (const auto state = environment.non_empty("XDG_STATE_HOME")) return *state + "/berth/history";
  if (const auto home = environment.non_empty("HOME")) {
    return *home + "/.local/state/berth/history";
  }
  return {};
}

}  // namespace berth::cli
