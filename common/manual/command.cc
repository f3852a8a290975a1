#include "common/manual/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <string_view>

namespace berth::manual {
namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kTextColumn = 26;

std::string full_name(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : full_name(*parent) + " " + app.get_name();
}

std::vector<std::string> choices_of(const std::string& type) {
  if (type.find('|') == std::string::npos) return {};
  return CLI::detail::split(type, '|');
}

bool repeats(const CLI::Option& option) {
  return option.get_items_expected_max() > 1;
}

// Words of `text` in lines that end before column 80; every line but the first is indented.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t column) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    if (column > indent && column + 1 + word.size() > kColumns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out.push_back(' ');
      ++column;
    }
    out += word;
    column += word.size();
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return out + "\n";
}

// One entry of a list: a term, and its text beside or below it.
std::string entry(const std::string& term, const std::string& text) {
  std::string out = "  " + term;
  if (text.empty()) return out + "\n";
  if (out.size() + 2 > kTextColumn) {
    out += "\n" + std::string(kTextColumn, ' ');
  } else {
    out.append(kTextColumn - out.size(), ' ');
  }
  return out + wrapped(text, kTextColumn, kTextColumn);
}

bool same(const Option& a, const Option& b) {
  return a.names == b.names && a.text == b.text;
}

bool among(const std::vector<Option>& options, const Option& wanted) {
  return std::any_of(options.begin(), options.end(),
                     [&](const Option& option) { return same(option, wanted); });
}

}  // namespace

Command describe(const CLI::App& app) {
  Command command;
  command.name = full_name(app);
  command.text = app.get_description();
  command.details = app.get_footer();
  while (command.details.ends_with('\n')) command.details.pop_back();
  while (command.details.starts_with('\n')) command.details.erase(0, 1);
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    const bool takes_value = option->get_items_expected_max() > 0;
    const std::string type = takes_value ? option->get_type_name() : std::string();
    if (option->get_positional()) {
      command.arguments.push_back({option->get_name(true, false), choices_of(type),
                                   option->get_description(), option->get_required(),
                                   repeats(*option)});
      continue;
    }
    Option made;
    for (const std::string& name : option->get_snames()) made.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) made.names.push_back("--" + name);
    made.value = type;
    made.choices = choices_of(type);
    made.text = option->get_description();
    made.repeats = repeats(*option);
    command.options.push_back(std::move(made));
  }
  // CLI11 puts its own first; people look for it last.
  std::stable_partition(command.options.begin(), command.options.end(), [](const Option& option) {
    return std::find(option.names.begin(), option.names.end(), "--help") == option.names.end();
  });
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!below->get_group().empty()) command.commands.push_back(describe(*below));
  }
  return command;
}

std::string usage(const Command& command) {
  std::string out = command.name;
  if (!command.commands.empty()) return out + " VERB …";
  if (!command.options.empty()) out += " [OPTIONS]";
  for (const Argument& argument : command.arguments) {
    const std::string name = argument.name + (argument.repeats ? "…" : "");
    out += argument.required ? " " + name : " [" + name + "]";
  }
  return out;
}

std::string option_names(const Option& option) {
  std::string out;
  for (const std::string& name : option.names) out += (out.empty() ? "" : ", ") + name;
  if (!option.value.empty()) out += " " + option.value;
  return out;
}

std::string help(const Command& command) {
  std::string out = wrapped(command.text, 0, 0) + "\nUsage: " + usage(command) + "\n";
  if (!command.commands.empty()) {
    out += "\nVerbs:\n";
    for (const Command& below : command.commands) out += entry(below.verb(), below.text);
  }
  if (!command.arguments.empty()) {
    out += "\nArguments:\n";
    for (const Argument& argument : command.arguments) out += entry(argument.name, argument.text);
  }
  if (!command.options.empty()) {
    out += "\nOptions:\n";
    for (const Option& option : command.options) out += entry(option_names(option), option.text);
  }
  for (const Block& block : blocks(command.details)) {
    out += "\n" + (block.example ? block.text + "\n" : wrapped(block.text, 0, 0));
  }
  return out;
}

std::vector<Block> blocks(const std::string& details) {
  std::vector<Block> out;
  bool fresh = true;
  for (const std::string& line : CLI::detail::split(details, '\n')) {
    if (line.empty()) {
      fresh = true;
      continue;
    }
    const bool example = line.starts_with("  ");
    if (fresh || out.back().example != example) {
      out.push_back({example, line});
    } else {
      out.back().text += (example ? "\n" : " ") + line;
    }
    fresh = false;
  }
  return out;
}

std::vector<const Command*> leaves(const Command& command) {
  if (command.commands.empty()) return {&command};
  std::vector<const Command*> out;
  for (const Command& below : command.commands) {
    for (const Command* leaf : leaves(below)) out.push_back(leaf);
  }
  return out;
}

std::vector<Option> common_options(const Command& command) {
  const auto all = leaves(command);
  std::vector<Option> out;
  for (const Command* leaf : all) {
    for (const Option& option : leaf->options) {
      const auto count = std::count_if(
          all.begin(), all.end(), [&](const Command* one) { return among(one->options, option); });
      const bool most = 2 * static_cast<std::size_t>(count) > all.size();
      if (most && !among(out, option)) out.push_back(option);
    }
  }
  return out;
}

std::vector<Option> own_options(const Command& command, const std::vector<Option>& common) {
  std::vector<Option> out;
  for (const Option& option : command.options) {
    if (!among(common, option)) out.push_back(option);
  }
  return out;
}

}  // namespace berth::manual
