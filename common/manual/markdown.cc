#include "common/manual/markdown.h"

#include <algorithm>
#include <string_view>

namespace berth::manual {
namespace {

// Text outside code, so that nothing in it is taken for markup.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '*' || c == '_' || c == '<' || c == '|' || c == '`' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

// An example without its indentation.
std::string unindented(const std::string& text) {
  std::string out;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    out += text.substr(begin + 2, end - begin - 2) + "\n";
    begin = end + 1;
  }
  return out;
}

std::string details(const Command& command) {
  std::string out;
  for (const Block& block : blocks(command.details)) {
    out += "\n" + (block.example ? "```sh\n" + unindented(block.text) + "```\n"
                                 : plain(block.text) + "\n");
  }
  return out;
}

std::string option_list(const std::vector<Option>& options) {
  std::string out;
  for (const Option& option : options) {
    out += "- `" + option_names(option) + "`: " + plain(option.text) + "\n";
  }
  return out;
}

std::string leaf_section(const Command& command, const std::vector<Option>& common) {
  std::string out = "\n## " + command.name + "\n\n`" + usage(command) + "`\n\n" +
                    plain(command.text) + ".\n" + details(command);
  std::string list;
  for (const Argument& argument : command.arguments) {
    list += "- `" + argument.name + "`: " + plain(argument.text) + "\n";
  }
  list += option_list(own_options(command, common));
  if (!list.empty()) out += "\n" + list;
  return out;
}

// "EXIT STATUS" -> "Exit status"; JSON stays.
std::string heading(const std::string& title) {
  if (title.size() < 5) return title;
  std::string out = title.substr(0, 1);
  for (const char c : title.substr(1)) {
    out.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  }
  return out;
}

}  // namespace

std::string markdown_page(const Command& command, const ManPage& page, const std::string& origin) {
  std::string out = "<!-- " + origin + " -->\n\n# " + command.name + "\n\n" + plain(command.text) +
                    "\n" + details(command);
  const bool has_verbs = !command.commands.empty();
  const std::vector<Option> common = has_verbs ? common_options(command) : std::vector<Option>();
  if (has_verbs) {
    out += "\n| verb | what it does |\n|---|---|\n";
    for (const Command* leaf : leaves(command)) {
      out += "| `" + leaf->name + "` | " + plain(leaf->text) + " |\n";
    }
    out += "\n## Options of every verb\n\n" + option_list(common);
  }
  for (const ManPage::Section& section : page.sections) {
    out += "\n## " + heading(section.title) + "\n\n";
    for (const auto& [term, text] : section.entries) {
      out += "- `" + term + "`: " + plain(text) + "\n";
    }
  }
  for (const Command* leaf : leaves(command)) out += leaf_section(*leaf, common);
  return out;
}

}  // namespace berth::manual
