#include "supervisor/catalog/file_words.h"

#include <cstddef>
#include <filesystem>

#include "common/text.h"

namespace berth::catalog {

std::string file_name_of(const std::string& path) {
  constexpr std::size_t kShownBytes = 255;
  return printable_line(std::filesystem::path(path).filename().string(), kShownBytes);
}

std::string without_stop(std::string text) {
  while (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace berth::catalog
