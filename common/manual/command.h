#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

// What a command line offers, read from the CLI11 objects that parse it: the one source of --help,
// man pages, completion in shells and the page in docs/.
namespace berth::manual {

struct Option {
  std::vector<std::string> names;  // "-f", "--follow"
  std::string value;               // what follows it: "N"; empty: a flag
  std::vector<std::string> choices;
  std::string text;
  bool repeats = false;
};

struct Argument {
  std::string name;  // "MODEL"
  std::vector<std::string> choices;
  std::string text;
  bool required = false;
  bool repeats = false;
};

struct Command {
  std::string name;  // with the names of its parents: "berth config check"
  std::string text;  // one line
  // Paragraphs, divided by empty lines; lines that begin with two blanks are examples, shown as
  // they are.
  std::string details;
  std::vector<Argument> arguments;
  std::vector<Option> options;
  std::vector<Command> commands;  // without hidden ones

  // The last word of `name`.
  [[nodiscard]] std::string verb() const { return name.substr(name.rfind(' ') + 1); }
};

// Reads `app` and what lies below it. A description is the text, a footer the details; a group ""
// hides. Choices are written as the type: "bash|zsh|fish".
Command describe(const CLI::App& app);

// "berth logs [OPTIONS] MODEL"
std::string usage(const Command& command);

// "-n, --lines N"
std::string option_names(const Option& option);

// What --help prints, for 80 columns.
std::string help(const Command& command);

// A part of the details: a paragraph as one line, or an example as its lines.
struct Block {
  bool example = false;
  std::string text;
};
std::vector<Block> blocks(const std::string& details);

// Every command that has none below it, in order.
std::vector<const Command*> leaves(const Command& command);

// Options that most leaves of `command` have, told once for all.
std::vector<Option> common_options(const Command& command);
// Options of `command` without those that are in `common`.
std::vector<Option> own_options(const Command& command, const std::vector<Option>& common);

}  // namespace berth::manual
