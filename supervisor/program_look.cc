#include "supervisor/program_look.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "supervisor/command_launch.h"
#include "supervisor/program_reader.h"

namespace berth {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostArguments = 64;

// Absent: no regular file.
std::optional<core::ProgramFile> file_at(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  return core::ProgramFile{path, static_cast<std::uint64_t>(info.st_size),
                           info.st_mtim.tv_sec * kNanoseconds + info.st_mtim.tv_nsec, info.st_ino};
}

// What of an argument may be the path of a file.
std::vector<std::string> paths_in(const std::string& argument) {
  // A placeholder differs from run to run.
  if (argument.empty() || argument.find('{') != std::string::npos) return {};
  std::vector<std::string> paths = {argument};
  const std::size_t equals = argument.find('=');
  if (equals != std::string::npos && equals + 1 < argument.size()) {
    paths.push_back(argument.substr(equals + 1));
  }
  return paths;
}

}  // namespace

ProgramLook look_at_program(const catalog::ModelSettings& settings,
                            const std::vector<std::string>& environment) {
  ProgramLook look;
  const CommandTemplate open = command_template(settings, environment);
  if (open.argv.empty()) return look;
  const fs::path directory = settings.directory.empty() ? "/" : settings.directory;
  core::ProgramFile program;
  program.path = open.argv.front();
  const ProgramPlace place = program_place(program.path, settings.directory, open.environment);
  for (const std::string& path : paths_of(place)) {
    look.watched.push_back(path);
    const auto file = file_at(path);
    if (!file || ::access(path.c_str(), X_OK) != 0) continue;
    program = *file;
    break;  // those behind it do not matter
  }
  look.files.push_back(std::move(program));
  const std::size_t arguments = std::min(open.argv.size(), kMostArguments);
  for (std::size_t i = 1; i < arguments; ++i) {
    for (const std::string& path : paths_in(open.argv[i])) {
      const std::string whole = (directory / path).lexically_normal().string();
      auto file = file_at(whole);
      // A word may be no path at all, but in a working directory it may become one.
      const bool may_come = path.find('/') != std::string::npos ||
                            (!settings.directory.empty() && !path.starts_with('-'));
      if (file || may_come) look.watched.push_back(whole);
      if (file) look.files.push_back(*std::move(file));
    }
  }
  std::error_code unknown;  // then it is not there for us
  if (!settings.directory.empty() && !fs::is_directory(directory, unknown)) {
    look.watched.push_back(settings.directory);
    look.files.push_back({settings.directory, 0, 0, 0});
  }
  return look;
}

}  // namespace berth
