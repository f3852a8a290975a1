#include "common/manual/man_page.h"

#include <algorithm>
#include <string_view>

namespace berth::manual {
namespace {

// Text as roff takes it literally.
std::string literal(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\n') {
      out += "\n\\&";
    } else {
      out.push_back(c);
    }
  }
  // Only at the beginning of a line: elsewhere they are no requests.
  if (out.starts_with('.') || out.starts_with('\'')) out.insert(0, "\\&");
  return out;
}

std::string bold(std::string_view text) {
  return "\\fB" + literal(text) + "\\fR";
}

std::string italic(std::string_view text) {
  return "\\fI" + literal(text) + "\\fR";
}

// An argument of a request.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : literal(text)) out += c == '"' ? std::string("\\(dq") : std::string(1, c);
  return out + "\"";
}

std::string synopsis(const Command& command) {
  std::string out = bold(command.name);
  if (!command.commands.empty()) return out + " " + italic("VERB") + " …\n";
  if (!command.options.empty()) out += " [" + italic("OPTIONS") + "]";
  for (const Argument& argument : command.arguments) {
    const std::string name = italic(argument.name) + (argument.repeats ? "…" : "");
    out += argument.required ? " " + name : " [" + name + "]";
  }
  return out + "\n";
}

std::string details(const Command& command) {
  std::string out;
  for (const Block& block : blocks(command.details)) {
    out += block.example ? ".PP\n.EX\n" + literal(block.text) + "\n.EE\n"
                         : ".PP\n" + literal(block.text) + "\n";
  }
  return out;
}

std::string option_list(const std::vector<Option>& options) {
  std::string out;
  for (const Option& option : options) {
    std::string names;
    for (const std::string& name : option.names) {
      names += (names.empty() ? "" : ", ") + bold(name);
    }
    if (!option.value.empty()) names += " " + italic(option.value);
    out += ".TP\n" + names + "\n" + literal(option.text) + "\n";
  }
  return out;
}

std::string argument_list(const std::vector<Argument>& arguments) {
  std::string out;
  for (const Argument& argument : arguments) {
    if (argument.text.empty()) continue;
    out += ".TP\n" + italic(argument.name) + "\n" + literal(argument.text) + "\n";
  }
  return out;
}

}  // namespace

std::string man_page(const Command& command, const ManPage& page) {
  std::string title = command.name;
  std::transform(title.begin(), title.end(), title.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  std::string out = ".TH " + quoted(title) + " " + std::to_string(page.section) + " \"\" " +
                    quoted(page.source) + "\n";
  out += ".SH NAME\n" + literal(command.name) + " \\- " + literal(page.summary) + "\n";
  out += ".SH SYNOPSIS\n" + synopsis(command);
  out += ".SH DESCRIPTION\n" + literal(command.text) + "\n" + details(command);

  if (command.commands.empty()) {
    out += argument_list(command.arguments);
    if (!command.options.empty()) out += ".SH OPTIONS\n" + option_list(command.options);
  } else {
    const auto common = common_options(command);
    out += ".SH VERBS\n";
    for (const Command* leaf : leaves(command)) {
      out += ".SS " + quoted(leaf->name) + "\n" + synopsis(*leaf) + ".PP\n" + literal(leaf->text) +
             "\n" + argument_list(leaf->arguments);
      out += option_list(own_options(*leaf, common)) + details(*leaf);
    }
    out += ".SH OPTIONS\nEvery verb takes these.\n" + option_list(common);
  }
  for (const ManPage::Section& section : page.sections) {
    out += ".SH " + quoted(section.title) + "\n";
    for (const auto& [term, text] : section.entries) {
      out += ".TP\n" + bold(term) + "\n" + literal(text) + "\n";
    }
  }
  if (!page.see_also.empty()) {
    out += ".SH SEE ALSO\n";
    for (std::size_t i = 0; i < page.see_also.size(); ++i) {
      out += (i > 0 ? ", " : "") + bold(page.see_also[i]);
    }
    out += "\n";
  }
  return out;
}

}  // namespace berth::manual
