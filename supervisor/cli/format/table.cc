#include "supervisor/cli/format/table.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "supervisor/cli/format/text.h"

namespace berth::cli {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kLeastShrunk = 12;
constexpr std::size_t kLeastWrapped = 24;

std::string_view code_of(Style style) {
  switch (style) {
    case Style::kPlain:
      return "";
    case Style::kBold:
      return "1";
    case Style::kDim:
      return "2";
    case Style::kGood:
      return "32";
    case Style::kWarning:
      return "33";
    case Style::kBad:
      return "31";
  }
  return "";
}

}  // namespace

std::string styled(std::string_view text, Style style, bool colours) {
  const std::string_view code = code_of(style);
  if (!colours || code.empty() || text.empty()) return std::string(text);
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add(std::vector<Cell> row) {
  row.resize(columns_.size());
  rows_.push_back(std::move(row));
}

std::vector<std::size_t> Table::widths(std::size_t width) const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t most = display_width(columns_[c].title);
    for (const auto& row : rows_) most = std::max(most, display_width(row[c].text));
    widths.push_back(most);
  }
  if (width == 0 || widths.empty()) return widths;

  const auto total = [&] {
    return std::accumulate(widths.begin(), widths.end(), (widths.size() - 1) * kGap);
  };
  // First the last column is wrapped, then the widest one that may be cut is.
  const std::size_t last = widths.size() - 1;
  if (!columns_[last].right && total() > width) {
    const std::size_t over = total() - width;
    const std::size_t least = std::min(widths[last], kLeastWrapped);
    widths[last] -= std::min(over, widths[last] - least);
  }
  while (total() > width) {
    std::size_t widest = widths.size();
    for (std::size_t c = 0; c < widths.size(); ++c) {
      if (!columns_[c].shrinks || widths[c] <= kLeastShrunk) continue;
      if (widest == widths.size() || widths[c] > widths[widest]) widest = c;
    }
    if (widest == widths.size()) break;  // the terminal wraps the rest
    --widths[widest];
  }
  return widths;
}

std::string Table::render(std::size_t width, bool colours) const {
  const std::vector<std::size_t> widths = this->widths(width);
  const std::size_t last = columns_.size() - 1;
  std::string out;

  const auto line = [&](const std::vector<Cell>& cells) {
    std::string text;
    std::vector<std::string> more;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      std::string shown;
      if (c == last && !columns_[c].right && display_width(cells[c].text) > widths[c]) {
        more = wrap(cells[c].text, widths[c]);
        shown = more.front();
        more.erase(more.begin());
      } else {
        shown = fit(cells[c].text, widths[c]);
      }
      const std::size_t pad = widths[c] - std::min(widths[c], display_width(shown));
      if (columns_[c].right) text.append(pad, ' ');
      text += styled(shown, cells[c].style, colours);
      if (!columns_[c].right && c != last) text.append(pad, ' ');
      if (c != last) text.append(kGap, ' ');
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text;
    out.push_back('\n');
    const std::size_t indent =
        std::accumulate(widths.begin(), widths.end() - 1, (widths.size() - 1) * kGap);
    for (const std::string& rest : more) {
      out.append(indent, ' ');
      out += styled(rest, cells[last].style, colours);
      out.push_back('\n');
    }
  };

  std::vector<Cell> titles;
  bool titled = false;
  for (const Column& column : columns_) {
    titles.push_back({column.title, Style::kBold});
    titled = titled || !column.title.empty();
  }
  if (titled) line(titles);
  for (const auto& row : rows_) line(row);
  return out;
}

}  // namespace berth::cli
