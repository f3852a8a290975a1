#include "supervisor/cli/doctor/worker.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <string_view>

#include "common/fd.h"
#include "common/text.h"
#include "supervisor/cli/doctor/subprocess.h"

namespace berth::cli {
namespace {

constexpr std::chrono::seconds kStartDeadline{10};
constexpr std::size_t kMostHeaders = 128;

bool executable(const std::string& path) {
  return ::access(path.c_str(), X_OK) == 0;
}

// berthd beside this program, else in PATH.
std::optional<std::string> find_berthd(const Environment& environment) {
  const std::string own = environment.executable;
  const std::string beside = own.substr(0, own.rfind('/') + 1) + "berthd";
  if (executable(beside)) return beside;
  const std::string path = environment.non_empty("PATH").value_or("/usr/bin:/usr/sbin");
  std::size_t begin = 0;
  while (begin <= path.size()) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string candidate = path.substr(begin, end - begin) + "/berthd";
    if (candidate.front() == '/' && executable(candidate)) return candidate;
    begin = end + 1;
  }
  return std::nullopt;
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status)) return "ended by signal " + std::to_string(WTERMSIG(status));
  return "exit " + std::to_string(WEXITSTATUS(status));
}

std::string first_line(const std::string& text) {
  return printable_line(text.substr(0, text.find('\n')), 256);
}

// Whether a program is there and says its version. `place`: where it must be.
Check check_start(const std::string& what, const std::string& program, const std::string& place) {
  if (::access(program.c_str(), F_OK) != 0) {
    return error(what, "there is no program " + program,
                 place + ": install all programs from one build");
  }
  if (!executable(program)) {
    return error(what, program + " may not be executed by this user",
                 "give it its mode back: chmod 755 " + program);
  }
  const Ran ran = run_program({program, "--version"}, kStartDeadline);
  if (!ran.started) {
    return error(what, program + " cannot be started: " + ran.error,
                 "is it built for this machine?");
  }
  if (ran.timed_out) {
    return error(what, program + " --version did not end within 10 s", "is the disk very slow?");
  }
  if (!WIFEXITED(ran.status) || WEXITSTATUS(ran.status) != 0) {
    return error(
        what, program + " --version: " + describe_end(ran.status) + ": " + first_line(ran.output),
        "are its libraries there? run deploy/setup and build again");
  }
  return ok(what, program + " starts: " + first_line(ran.output));
}

}  // namespace

std::optional<std::string> program_loader(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  Elf64_Ehdr header{};
  if (!file || ::pread(file.get(), &header, sizeof header, 0) != sizeof header) {
    return std::nullopt;
  }
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > kMostHeaders) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part{};
    const auto at = static_cast<off_t>(header.e_phoff + i * sizeof part);
    if (::pread(file.get(), &part, sizeof part, at) != sizeof part) return std::nullopt;
    if (part.p_type != PT_INTERP) continue;
    std::array<char, 4096> name{};
    if (part.p_filesz == 0 || part.p_filesz >= name.size()) return std::nullopt;
    const auto size = static_cast<ssize_t>(part.p_filesz);
    if (::pread(file.get(), name.data(), part.p_filesz, static_cast<off_t>(part.p_offset)) !=
        size) {
      return std::nullopt;
    }
    return std::string(name.data());
  }
  return std::nullopt;
}

Checks check_worker(const Environment& environment, const std::string& running) {
  Checks checks;
  const auto berthd = running.empty() ? find_berthd(environment) : running;
  if (!berthd) {
    checks.push_back(error("berthd", "it is neither beside this program nor in PATH",
                           "install berth, or build it: cmake --preset release"));
    return checks;
  }
  checks.push_back(ok("berthd", *berthd));
  const std::string folder = berthd->substr(0, berthd->rfind('/') + 1);
  const std::string worker = folder + "berth-worker";
  const auto loader = program_loader(worker);
  if (loader && ::access(loader->c_str(), F_OK) != 0) {
    checks.push_back(error("libllama", "the loader of " + worker + " is not there: " + *loader,
                           "run deploy/setup, which brings libllama and what belongs to it"));
  } else {
    checks.push_back(check_start("worker", worker, "it must lie beside berthd"));
    if (loader && checks.back().finding == Finding::kOk) {
      checks.push_back(ok("libllama", "loaded by " + *loader));
    }
  }
  checks.push_back(check_start("templates", folder + "berth-template",
                               "without it chats fail; it must lie beside berth-worker"));
  return checks;
}

}  // namespace berth::cli
