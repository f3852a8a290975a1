#include "supervisor/catalog/file_stamp.h"

#include <sys/stat.h>

#include <array>

namespace berth::catalog {

std::uint64_t mix_stamp(std::uint64_t seed, std::uint64_t value) {
  seed ^= value + 0x9e3779b97f4a7c15ULL + (seed << 6U) + (seed >> 2U);
  seed *= 0xff51afd7ed558ccdULL;
  return seed ^ (seed >> 33U);
}

std::uint64_t file_stamp(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return 0;
  std::uint64_t stamp = 1;
  for (const auto part : std::to_array<std::uint64_t>(
           {info.st_dev, info.st_ino, info.st_mode, static_cast<std::uint64_t>(info.st_size),
            static_cast<std::uint64_t>(info.st_mtim.tv_sec),
            static_cast<std::uint64_t>(info.st_mtim.tv_nsec),
            static_cast<std::uint64_t>(info.st_ctim.tv_sec),
            static_cast<std::uint64_t>(info.st_ctim.tv_nsec)})) {
    stamp = mix_stamp(stamp, part);
  }
  return stamp == 0 ? 1 : stamp;
}

std::uint64_t files_stamp(const std::vector<std::string>& paths) {
  std::uint64_t stamp = 0;
  for (const std::string& path : paths) stamp = mix_stamp(stamp, file_stamp(path));
  return stamp;
}

std::vector<std::string> companions_of(const ModelSettings& settings) {
  std::vector<std::string> paths = settings.adapters;
  if (!settings.draft.empty()) paths.push_back(settings.draft);
  const std::string& chat = settings.chat_template;
  if (!chat.empty() && !chat.starts_with(kBuiltinTemplate)) paths.push_back(chat);
  return paths;
}

}  // namespace berth::catalog
