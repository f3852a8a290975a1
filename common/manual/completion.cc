#include "common/manual/completion.h"

#include <set>
#include <vector>

namespace berth::manual {
namespace {

// The command and all below it.
std::vector<const Command*> everything(const Command& command) {
  std::vector<const Command*> out = {&command};
  for (const Command& below : command.commands) {
    for (const Command* one : everything(below)) out.push_back(one);
  }
  return out;
}

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += between;
    out += word;
  }
  return out;
}

// In single quotes, for any of the shells.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// What follows behind the program's own name: "config/check"; empty for the program itself.
std::string path_of(const Command& command) {
  const std::size_t blank = command.name.find(' ');
  if (blank == std::string::npos) return {};
  std::string path = command.name.substr(blank + 1);
  for (char& c : path) {
    if (c == ' ') c = '/';
  }
  return path;
}

std::vector<std::string> verbs_of(const Command& command) {
  std::vector<std::string> out;
  for (const Command& below : command.commands) out.push_back(below.verb());
  return out;
}

std::vector<std::string> option_names_of(const Command& command) {
  std::vector<std::string> out;
  for (const Option& option : command.options) {
    out.insert(out.end(), option.names.begin(), option.names.end());
  }
  return out;
}

// How a value is completed: "model", "file", "none", or its choices with blanks between.
std::string kind_of(const std::string& name, const std::vector<std::string>& choices) {
  if (!choices.empty()) return joined(choices, " ");
  if (name == "MODEL") return "model";
  if (name == "FILE") return "file";
  return "none";
}

// Behind an option of zsh's _arguments: ":what:how".
std::string zsh_value(const std::string& name, const std::vector<std::string>& choices,
                      const std::string& program) {
  if (!choices.empty()) return ":" + name + ":(" + joined(choices, " ") + ")";
  if (name == "MODEL") return ":" + name + ":_" + program + "_models";
  if (name == "FILE") return ":" + name + ":_files";
  return ":" + name + ": ";
}

// A text within a specification of _arguments.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

std::string zsh_function(const Command& command) {
  std::string name = "_" + command.name;
  for (char& c : name) {
    if (c == ' ') c = '_';
  }
  return name;
}

std::string zsh_options(const Command& command, const std::string& program) {
  std::string out;
  for (const Option& option : command.options) {
    for (const std::string& name : option.names) {
      std::string spec = option.repeats ? "*" : "";
      spec += name + "[" + zsh_text(option.text) + "]";
      if (!option.value.empty()) spec += zsh_value(option.value, option.choices, program);
      out += " \\\n    " + quoted(spec);
    }
  }
  return out;
}

std::string zsh_command(const Command& command, const std::string& program) {
  std::string out = zsh_function(command) + "() {\n";
  if (command.commands.empty()) {
    out += "  _arguments -s -S" + zsh_options(command, program);
    for (const Argument& argument : command.arguments) {
      const std::string optional = argument.required ? "" : ":";
      out += " \\\n    " + quoted((argument.repeats ? "*" : optional) +
                                  zsh_value(argument.name, argument.choices, program));
    }
    return out + "\n}\n\n";
  }
  out += "  local curcontext=$curcontext state line\n  typeset -A opt_args\n";
  out += "  _arguments -C" + zsh_options(command, program) +
         " \\\n    '1: :->verb' \\\n    '*:: :->rest'\n";
  out += "  case $state in\n    verb)\n      local -a verbs=(\n";
  for (const Command& below : command.commands) {
    std::string text = below.verb() + ":";
    for (const char c : below.text) text += c == ':' ? std::string("\\:") : std::string(1, c);
    out += "        " + quoted(text) + "\n";
  }
  out +=
      "      )\n      _describe -t verbs verb verbs\n      ;;\n    rest)\n      case $line[1] in\n";
  for (const Command& below : command.commands) {
    out += "        " + below.verb() + ") " + zsh_function(below) + " ;;\n";
  }
  out += "      esac\n      ;;\n  esac\n}\n\n";
  return out;
}

std::string fish_condition(const Command& command) {
  // The words behind the program's name, in order: `seen config; and seen check`.
  std::string path = path_of(command);
  std::string out;
  std::size_t begin = 0;
  while (begin < path.size()) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (!out.empty()) out += "; and ";
    out += "__fish_seen_subcommand_from " + path.substr(begin, end - begin);
    begin = end + 1;
  }
  if (!command.commands.empty()) {
    if (!out.empty()) out += "; and ";
    out += "not __fish_seen_subcommand_from " + joined(verbs_of(command), " ");
  }
  return out;
}

}  // namespace

std::string bash_completion(const Command& command, std::string_view list_models) {
  const std::string& program = command.name;
  const std::vector<const Command*> all = everything(command);
  std::vector<std::string> paths;
  std::set<std::string> valued;
  for (const Command* one : all) {
    const std::string path = path_of(*one);
    if (!path.empty()) paths.push_back(path.find('/') == std::string::npos ? "/" + path : path);
    for (const Option& option : one->options) {
      if (!option.value.empty()) valued.insert(option.names.begin(), option.names.end());
    }
  }
  std::string out = "# bash completion for " + program + ", made by '" + program +
                    " completion bash'\n\n_" + program + "() {\n";
  out +=
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  local path= position=0 i word before= kind= verbs= options= arguments=\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    word=${COMP_WORDS[i]}\n"
      "    case \"$before\" in\n      " +
      joined({valued.begin(), valued.end()}, "|") +
      ") before=; continue ;;\n"
      "    esac\n"
      "    before=$word\n"
      "    case \"$path/$word\" in\n      " +
      joined(paths, "|") +
      ") path=${path:+$path/}$word; position=0 ;;\n"
      "      */-*) ;;\n"
      "      *) position=$((position + 1)) ;;\n"
      "    esac\n"
      "  done\n"
      "  case \"$path\" in\n";
  for (const Command* one : all) {
    out += "    " + quoted(path_of(*one)) + ")\n";
    out += "      verbs=" + quoted(joined(verbs_of(*one), " ")) +
           " options=" + quoted(joined(option_names_of(*one), " ")) + "\n";
    if (!one->arguments.empty()) {
      out += "      case $position in\n";
      for (std::size_t i = 0; i < one->arguments.size(); ++i) {
        const Argument& argument = one->arguments[i];
        out += "        " + (argument.repeats ? "*" : std::to_string(i)) +
               ") arguments=" + quoted(kind_of(argument.name, argument.choices)) + " ;;\n";
      }
      out += "      esac\n";
    }
    out += "      ;;\n";
  }
  out +=
      "  esac\n"
      "  kind=$arguments\n"
      "  case \"$previous\" in\n";
  std::set<std::string> done;
  for (const Command* one : all) {
    for (const Option& option : one->options) {
      if (option.value.empty() || !done.insert(option.names.front()).second) continue;
      out += "    " + joined(option.names, "|") +
             ") kind=" + quoted(kind_of(option.value, option.choices)) + "; verbs= options= ;;\n";
    }
  }
  out +=
      "  esac\n"
      "  COMPREPLY=()\n"
      "  if [[ $current == -* && -n $options ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\")\n"
      "    return\n"
      "  fi\n"
      "  case \"$kind\" in\n"
      "    '') mapfile -t COMPREPLY < <(compgen -W \"$verbs\" -- \"$current\") ;;\n"
      "    none) ;;\n"
      "    file) mapfile -t COMPREPLY < <(compgen -f -- \"$current\") ;;\n"
      "    model) mapfile -t COMPREPLY < <(compgen -W \"$(" +
      std::string(list_models) +
      " 2>/dev/null)\" -- \"$current\") ;;\n"
      "    *) mapfile -t COMPREPLY < <(compgen -W \"$kind\" -- \"$current\") ;;\n"
      "  esac\n"
      "}\n\ncomplete -o filenames -o bashdefault -F _" +
      program + " " + program + "\n";
  return out;
}

std::string zsh_completion(const Command& command, std::string_view list_models) {
  const std::string& program = command.name;
  std::string out = "#compdef " + program + "\n# zsh completion for " + program + ", made by '" +
                    program + " completion zsh'\n\n";
  out += "_" + program + "_models() {\n  local -a names=(${(f)\"$(" + std::string(list_models) +
         " 2>/dev/null)\"})\n  compadd -a names\n}\n\n";
  for (const Command* one : everything(command)) out += zsh_command(*one, program);
  // Whether it is loaded by the completion system or sourced.
  out += "if [[ ${funcstack[1]} == _" + program + " ]]; then\n  _" + program +
         " \"$@\"\nelse\n  compdef _" + program + " " + program + "\nfi\n";
  return out;
}

std::string fish_completion(const Command& command, std::string_view list_models) {
  const std::string& program = command.name;
  std::string out = "# fish completion for " + program + ", made by '" + program +
                    " completion fish'\n\ncomplete -c " + program + " -f\n";
  const std::string models = quoted("(" + std::string(list_models) + " 2>/dev/null)");
  for (const Command* one : everything(command)) {
    const std::string start = "complete -c " + program + " -n " + quoted(fish_condition(*one));
    for (const Command& below : one->commands) {
      out += start + " -a " + below.verb() + " -d " + quoted(below.text) + "\n";
    }
    for (const Option& option : one->options) {
      out += start;
      for (const std::string& name : option.names) {
        out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (!option.value.empty()) out += option.value == "FILE" ? " -r -F" : " -x";
      if (!option.choices.empty()) out += " -a " + quoted(joined(option.choices, " "));
      out += " -d " + quoted(option.text) + "\n";
    }
    for (const Argument& argument : one->arguments) {
      const std::string kind = kind_of(argument.name, argument.choices);
      if (kind == "none") continue;
      out += start + (kind == "file" ? " -F" : " -a " + (kind == "model" ? models : quoted(kind))) +
             "\n";
    }
  }
  return out;
}

}  // namespace berth::manual
