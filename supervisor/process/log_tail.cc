#include "supervisor/process/log_tail.h"

#include <algorithm>
#include <string_view>

#include "supervisor/core/log/line_cleaner.h"
#include "supervisor/core/redact.h"
#include "supervisor/process/log_cut.h"
#include "supervisor/process/log_input.h"

namespace berth::process {

Result<std::vector<std::string>> tail_lines(const std::string& path, std::uint64_t from,
                                            std::size_t count) {
  constexpr std::uint64_t kMostBytes = 64UL * 1024UL;
  const auto file = open_log_input(path);
  if (!file) return fail(file.error());
  // Where it is and where it ends, first.
  const auto place = read_log_part(file->get(), from, 0);
  if (!place) return fail(place.error());
  const bool cut_front = place->end - place->offset > kMostBytes;
  const auto part =
      read_log_part(file->get(), cut_front ? place->end - kMostBytes : place->offset, kMostBytes);
  if (!part) return fail(part.error());

  std::string_view rest = part->bytes;
  if (cut_front) {
    const std::size_t end = rest.find('\n');
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  std::vector<std::string> lines;
  std::string scratch;
  while (!rest.empty() && lines.size() < count) {
    // From the end: the last line first.
    if (rest.back() == '\n') rest.remove_suffix(1);
    const std::size_t before = rest.rfind('\n');
    const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
    std::string line = core::carried_text(core::clean_line(rest.substr(begin), scratch));
    if (!line.empty()) lines.push_back(std::move(line));
    rest = rest.substr(0, begin);
  }
  std::ranges::reverse(lines);
  return lines;
}

}  // namespace berth::process
