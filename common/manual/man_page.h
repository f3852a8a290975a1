#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/manual/command.h"

namespace berth::manual {

// What a man page says besides what its command line tells.
struct ManPage {
  int section = 1;
  std::string source;   // "berth 0.1.0"
  std::string summary;  // behind the name: "talk to berthd"
  // Titled lists, e.g. EXIT STATUS: a term and its text.
  struct Section {
    std::string title;
    std::vector<std::pair<std::string, std::string>> entries;
  };
  std::vector<Section> sections;
  std::vector<std::string> see_also;  // "berthd(8)"
};

// A page in man(7), ending with a newline.
std::string man_page(const Command& command, const ManPage& page);

}  // namespace berth::manual
