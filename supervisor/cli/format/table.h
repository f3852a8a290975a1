#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth::cli {

enum class Style : std::uint8_t { kPlain, kBold, kDim, kGood, kWarning, kBad };

// `text` with the colours of `style`; unchanged where `colours` is false.
std::string styled(std::string_view text, Style style, bool colours);

// A table for people: aligned columns, two blanks between them, no lines.
class Table {
 public:
  struct Column {
    std::string title;
    bool right = false;  // aligned to the right
    // Whether its cells may be cut where the terminal is too narrow, down to 12 columns.
    bool shrinks = false;
  };
  struct Cell {
    std::string text;  // one line, printable
    Style style = Style::kPlain;
  };

  // The last column is wrapped where it is left-aligned and the terminal is too narrow. Where all
  // titles are empty there is no line of titles.
  explicit Table(std::vector<Column> columns);

  // As many cells as there are columns.
  void add(std::vector<Cell> row);
  [[nodiscard]] bool empty() const { return rows_.empty(); }

  // `width`: columns of the terminal; 0: as wide as it needs to be. Every line ends with a newline.
  [[nodiscard]] std::string render(std::size_t width, bool colours) const;

 private:
  [[nodiscard]] std::vector<std::size_t> widths(std::size_t width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace berth::cli
