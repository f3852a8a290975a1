#include "common/manual/markdown.h"

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

std::string details(const Command& command) {
  std::string out;
  for (const Block& block : blocks(command.details)) {
    out += "\n" + (block.example ? "```sh\n" + block.text + "\n```\n" : plain(block.text) + "\n");
  }
  return out;
}

std::string leaf_section(const Command& command) {
  std::string out =
      "\n## " + command.name + "\n\n`" + usage(command) + "`\n\n" + plain(command.text) + "\n";
  std::string list;
  for (const Argument& argument : command.arguments) {
    if (!argument.text.empty()) {
      list += "- `" + argument.name + "`: " + plain(argument.text) + "\n";
    }
  }
  for (const Option& option : command.options) {
    list += "- `" + option_names(option) + "`: " + plain(option.text) + "\n";
  }
  if (!list.empty()) out += "\n" + list;
  return out + details(command);
}

}  // namespace

std::string markdown_page(const Command& command, const ManPage& page, const std::string& origin) {
  std::string out = "<!-- " + origin + " -->\n\n# " + command.name + "\n\n" + plain(command.text) +
                    "\n" + details(command);
  if (!command.commands.empty()) {
    out += "\n| verb | what it does |\n|---|---|\n";
    for (const Command* leaf : leaves(command)) {
      out += "| `" + leaf->name + "` | " + plain(leaf->text) + " |\n";
    }
  }
  for (const ManPage::Section& section : page.sections) {
    out += "\n## " + section.title + "\n\n";
    for (const auto& [term, text] : section.entries) {
      out += "- `" + term + "`: " + plain(text) + "\n";
    }
  }
  for (const Command* leaf : leaves(command)) out += leaf_section(*leaf);
  return out;
}

}  // namespace berth::manual
