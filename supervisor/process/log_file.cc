#include "supervisor/process/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>

#include "common/errno_text.h"
#include "common/text.h"
#include "common/wall_time.h"
#include "supervisor/process/directories.h"
#include "supervisor/process/log_cut.h"
#include "supervisor/process/log_input.h"

namespace berth::process {
namespace {

constexpr char kHexDigits[] = "0123456789ABCDEF";

void append_hex(std::string& out, std::uint64_t value, int digits) {
  for (int i = digits - 1; i >= 0; --i) {
    out += kHexDigits[(value >> (4U * static_cast<unsigned int>(i))) & 0xFU];
  }
}

// FNV-1a, 64 bit: only to keep the names of two very long models apart.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) {
    hash ^= static_cast<std::uint8_t>(c);
    hash *= 0x100000001b3U;
  }
  return hash;
}

bool is_safe(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

std::string safe_name(std::string_view model) {
  // NAME_MAX is 255; room for the hash, ".log" and a rotation number.
  constexpr std::size_t kMostBytes = 200;
  std::string name;
  for (const char c : model) {
    std::string next;
    if (is_safe(c) && !(c == '.' && name.empty())) {
      next = c;
    } else {
      next = "%";
      append_hex(next, static_cast<std::uint8_t>(c), 2);
    }
    if (name.size() + next.size() > kMostBytes) {
      // "%-" begins no encoded character.
      name += "%-";
      append_hex(name, hash_of(model), 16);
      return name;
    }
    name += next;
  }
  return name.empty() ? "%-" : name;
}

Status check_directory(const std::string& directory) {
  // Who may write there could forge a log.
  if (auto made = ensure_private_directory(directory, S_IRWXU); !made) {
    return fail(Reason::kInternal, "server.log_dir: " + made.error().message);
  }
  return {};
}

std::string numbered(const std::string& path, std::uint32_t number) {
  return path + "." + std::to_string(number);
}

Status rotate(const LogPolicy& policy, const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  if (static_cast<std::uint64_t>(info.st_size) < policy.rotate_bytes) return {};
  // Also those that are left of a time when more were kept.
  constexpr std::uint32_t kMostNumber = 10'000;
  for (std::uint32_t n = policy.keep > 0 ? policy.keep : 1; n < kMostNumber; ++n) {
    if (::unlink(numbered(path, n).c_str()) != 0 && n > policy.keep) break;
  }
  for (std::uint32_t n = policy.keep; n > 1; --n) {
    // What is missing in between stays missing.
    if (::rename(numbered(path, n - 1).c_str(), numbered(path, n).c_str()) != 0 &&
        errno != ENOENT) {
      return fail(Reason::kInternal, path + " cannot be rotated: " + errno_text(errno) + ".");
    }
  }
  const int moved =
      policy.keep > 0 ? ::rename(path.c_str(), numbered(path, 1).c_str()) : ::unlink(path.c_str());
  if (moved != 0) {
    return fail(Reason::kInternal, path + " cannot be rotated: " + errno_text(errno) + ".");
  }
  return {};
}

std::string header_line(const LogHeader& header) {
  constexpr std::size_t kMostBytes = 4000;
  std::string line =
      "== berth " + format_utc(header.time) + " instance=" + header.instance + " command=";
  for (std::size_t i = 0; i < header.command.size(); ++i) {
    const std::string& word = header.command[i];
    if (i > 0) line += ' ';
    const bool plain = !word.empty() && word.find_first_of(" \"\t\n") == std::string::npos;
    line += plain ? word : "\"" + word + "\"";
  }
  return printable_line(line, kMostBytes) + "\n";
}

Status write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return fail(Reason::kInternal, errno_text(errno));
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return {};
}

}  // namespace

std::string log_path(const std::string& directory, std::string_view model) {
  return directory + "/" + safe_name(model) + ".log";
}

Result<OpenedLog> open_log(const LogPolicy& policy, std::string_view model,
                           const LogHeader& header) {
  if (auto ready = check_directory(policy.directory); !ready) return fail(std::move(ready).error());
  OpenedLog log;
  log.path = log_path(policy.directory, model);
  if (auto rotated = rotate(policy, log.path); !rotated) return fail(std::move(rotated).error());

  // O_NONBLOCK: somebody may have put a FIFO there, and opening that would wait for a reader.
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  log.output.reset(::open(log.path.c_str(), kFlags, S_IRUSR | S_IWUSR));
  if (!log.output) {
    return fail(Reason::kInternal, log.path + " cannot be opened: " + errno_text(errno) + ".");
  }
  struct stat info {};
  if (::fstat(log.output.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return fail(Reason::kInternal, log.path + " is not a regular file.");
  }
  if (::fchmod(log.output.get(), S_IRUSR | S_IWUSR) != 0 ||
      ::fcntl(log.output.get(), F_SETFL, O_APPEND) != 0) {
    return fail(Reason::kInternal,
                log.path + " cannot be made private: " + errno_text(errno) + ".");
  }
  if (auto wrote = write_all(log.output.get(), header_line(header)); !wrote) {
    return fail(Reason::kInternal, log.path + " cannot be written: " + wrote.error().message + ".");
  }
  // The descriptor of the child does not read.
  const Result<UniqueFd> input = open_log_input(log.path);
  if (!input) return fail(input.error());
  log.start = log_end(input->get());
  return log;
}

}  // namespace berth::process
