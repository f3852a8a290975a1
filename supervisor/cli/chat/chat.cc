#include "supervisor/cli/chat/chat.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/text.h"
#include "supervisor/cli/answer.h"
#include "supervisor/cli/chat/history_file.h"
#include "supervisor/cli/chat/line_editor.h"
#include "supervisor/cli/chat/settings.h"
#include "supervisor/cli/format/text.h"

namespace berth::cli {
namespace {

std::vector<std::string> command_names() {
  return {"/help", "/clear", "/system", "/save", "/load", "/set", "/stats", "/exit"};
}

v1::GenerateRequest chat_request(const std::string& model, const Conversation& conversation,
                                 const SamplingOptions& sampling) {
  v1::GenerateRequest request;
  request.set_model(model);
  request.mutable_chat()->set_messages_json(conversation.messages_json());
  set_sampling(request, sampling);
  return request;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

// Finds out before a person types whether there is such a model that can chat.
std::optional<ExitCode> check_model(Context& context, const std::string& name) {
  auto client = context.client();
  if (!client) return context.fail(client.error());
  const auto reply = (*client)->list_models();
  if (!reply) return context.fail(reply.error());
  std::vector<std::string> names;
  for (const v1::Model& model : reply->models()) {
    const bool is_it =
        model.name() == name ||
        std::find(model.aliases().begin(), model.aliases().end(), name) != model.aliases().end();
    if (!is_it) {
      names.push_back(model.name());
      continue;
    }
    if (!model.problem().empty()) {
      return context.refuse("model " + name + " cannot be used: " + model.problem());
    }
    if (!model.can_chat()) {
      return context.refuse("model " + name + " cannot chat: it has no chat template",
                            {"'berth complete' continues a text with it"});
    }
    return std::nullopt;
  }
  std::vector<std::string> hints;
  const auto near = nearest_names(name, names);
  if (!near.empty()) hints.push_back("nearest names: " + printable_line(join_names(near), 1024));
  hints.emplace_back("'berth models' lists what there is");
  return context.refuse("there is no model '" + name + "'", std::move(hints));
}

ExitCode ask_once(Context& context, const ChatOptions& options, std::string prompt) {
  Conversation conversation;
  conversation.set_system(options.system);
  if (auto added = conversation.add({"user", std::move(prompt)}); !added) {
    return context.usage(added.error().message);
  }
  const auto request = chat_request(options.model, conversation, options.sampling);
  const Answer answer = ask_alone(context, request, options.verbose);
  return end_of(context, request, answer, options.verbose);
}

}  // namespace

ExitCode run_chat(Context& context, const ChatOptions& options) {
  Environment& environment = context.environment();
  if (first_invalid_utf8(options.system)) return context.usage("--system is not UTF-8");
  if (!options.prompt.empty() || !environment.input_terminal) {
    auto prompt = prompt_text(
        environment, options.prompt.empty() ? std::vector<std::string>{"-"} : options.prompt);
    if (!prompt) return context.usage(prompt.error().message);
    return ask_once(context, options, std::move(*prompt));
  }
  if (context.json()) {
    return context.usage("--json needs a PROMPT: a chat on the terminal is no JSON");
  }
  if (const auto end = check_model(context, options.model)) return *end;
  environment.interrupts.take_over(Interrupts::Again::kIsIgnored);
  HistoryFile history(history_path(environment));
  LineEditor editor(environment, history);
  const ExitCode code = Chat(context, options, editor).run();
  if (!history.problem().empty()) {
    environment.err.write(
        "berth: what was typed is not kept: " + printable_line(history.problem(), 1024) + "\n");
  }
  return code;
}

Chat::Chat(Context& context, const ChatOptions& options, LineSource& lines)
    : context_(context),
      model_(options.model),
      sampling_(options.sampling),
      verbose_(options.verbose),
      lines_(lines) {
  conversation_.set_system(options.system);
}

ExitCode Chat::run() {
  note("chat with " + model_ + " (/help for commands, Ctrl-D to leave)");
  MessageReader reader(lines_);
  bool interrupted = false;
  while (!leaving_) {
    Line line = reader.next();
    if (line.kind == Line::Kind::kEnd || line.kind == Line::Kind::kTerminate) break;
    if (line.kind == Line::Kind::kInterrupt) {
      if (interrupted) break;
      interrupted = true;
      note("(once more, or Ctrl-D, to leave)");
      continue;
    }
    interrupted = false;
    if (trimmed(line.text).empty()) continue;
    if (line.text.starts_with("//")) {
      send(line.text.substr(1));
    } else if (line.text.starts_with('/')) {
      if (!command(trimmed(line.text))) break;
    } else {
      send(std::move(line.text));
    }
  }
  return ExitCode::kOk;
}

void Chat::say(std::string_view text) {
  context_.print(text);
  context_.environment().out.write("\n");
}

void Chat::note(std::string_view text) {
  const Environment& environment = context_.environment();
  context_.environment().out.write(
      styled(printable_line(text, 4096), Style::kDim, environment.colours(environment.out)) + "\n");
}

void Chat::send(std::string text) {
  if (auto added = conversation_.add({"user", std::move(text)}); !added) {
    context_.refuse(added.error().message);
    return;
  }
  const Answer answer = ask(context_, chat_request(model_, conversation_, sampling_), verbose_);
  if (answer.done) {
    last_ = answer.done;
    ++answers_;
    tokens_read_ += answer.done->usage().prompt_tokens();
    tokens_written_ += answer.done->usage().completion_tokens();
    if (answer.done->finish_reason() == "length") {
      note(sampling_.max_tokens ? "[cut after " + counted(*sampling_.max_tokens, "token") + "]"
                                : "[cut: the context is full; /clear begins anew]");
    }
    if (verbose_) note(describe_usage(*answer.done));
  }
  if (answer.error) context_.fail(*answer.error, model_);
  if (answer.caught == Caught::kTerminate) leaving_ = true;

  // What came counts, also when it is not all of it. A question without an answer is taken back:
  // most templates want questions and answers by turns.
  const bool whole = answer.done.has_value();
  if (answer.text.empty() && !whole) {
    conversation_.drop_last();
    if (answer.error) note("[your message was taken back: the up key brings it to the prompt]");
    if (answer.caught == Caught::kInterrupt) note("[stopped; your message was taken back]");
    return;
  }
  if (auto added = conversation_.add({"assistant", answer.text, !whole}); !added) {
    conversation_.drop_last();
    context_.refuse(added.error().message);
  }
  if (answer.caught == Caught::kInterrupt) note("[stopped]");
}

bool Chat::command(std::string_view line) {
  const std::size_t blank = line.find_first_of(" \t\n");
  const std::string name(line.substr(0, blank));
  const std::string_view rest =
      blank == std::string_view::npos ? std::string_view() : trimmed(line.substr(blank));
  if (name == "/exit" || name == "/quit" || name == "/bye") return false;
  if (name == "/help" || name == "/?") {
    show_help();
  } else if (name == "/clear") {
    conversation_.clear();
    note("[the conversation begins anew]");
  } else if (name == "/system") {
    set_system(rest);
  } else if (name == "/save") {
    save(rest);
  } else if (name == "/load") {
    load(rest);
  } else if (name == "/set") {
    set_option(rest);
  } else if (name == "/stats") {
    show_stats();
  } else {
    const auto near = nearest_names(name, command_names(), 1);
    note("there is no command " + name + (near.empty() ? "" : "; did you mean " + near.front()) +
         "? /help lists them, and // at the beginning sends a text that begins with /");
  }
  return true;
}

void Chat::show_help() {
  say("/clear            forget the conversation (not the system message)\n"
      "/system TEXT      say how the model is to answer; without TEXT: show it; \"\": none\n"
      "/set NAME VALUE   temperature, top_k, top_p, seed or max_tokens; VALUE default: the\n"
      "                  model's; without NAME: show them\n"
      "/save FILE        keep the conversation in a file\n"
      "/load FILE        go on with a conversation that was saved\n"
      "/stats            tokens and times\n"
      "/exit             leave (or Ctrl-D, or Ctrl-C twice)\n"
      "\n"
      "Several lines: begin with \"\"\" and end with \"\"\", or end a line with \\, or press\n"
      "Alt-Enter; a paste is one message. // sends a text that begins with /.\n"
      "Ctrl-C stops an answer; what came of it stays in the conversation. Ctrl-R searches what\n"
      "you typed before.");
}

void Chat::set_system(std::string_view text) {
  if (text.empty()) {
    say(conversation_.system().empty() ? "no system message" : conversation_.system());
    return;
  }
  conversation_.set_system(text == "\"\"" ? std::string() : std::string(text));
  note(conversation_.system().empty() ? "[no system message]" : "[system message set]");
}

void Chat::set_option(std::string_view text) {
  if (text.empty()) {
    say(describe_settings(sampling_));
    return;
  }
  const std::size_t blank = text.find_first_of(" \t");
  const std::string_view name = text.substr(0, blank);
  const std::string_view value =
      blank == std::string_view::npos ? std::string_view() : trimmed(text.substr(blank));
  if (const auto set = change_setting(sampling_, name, value); !set) {
    context_.refuse(set.error().message);
  }
}

void Chat::show_stats() {
  if (!last_) {
    say("no answer yet");
    return;
  }
  say("last answer: " + describe_usage(*last_) + "\nthis chat:   " + counted(answers_, "answer") +
      ", " + std::to_string(tokens_read_) + " tokens read, " + std::to_string(tokens_written_) +
      " written; " + counted(conversation_.messages().size(), "message") + " in the conversation");
}

std::string Chat::expanded(std::string_view file) const {
  if (!file.starts_with("~/")) return std::string(file);
  const auto home = context_.environment().non_empty("HOME");
  return home ? *home + std::string(file.substr(1)) : std::string(file);
}

void Chat::save(std::string_view file) {
  if (file.empty()) {
    note("/save FILE: name the file");
    return;
  }
  if (const auto saved = conversation_.save(expanded(file), model_); !saved) {
    context_.refuse(saved.error().message);
    return;
  }
  note("[" + counted(conversation_.messages().size(), "message") + " saved in " +
       std::string(file) + "]");
}

void Chat::load(std::string_view file) {
  if (file.empty()) {
    note("/load FILE: name the file");
    return;
  }
  auto loaded = Conversation::load(expanded(file));
  if (!loaded) {
    context_.refuse(loaded.error().message);
    return;
  }
  conversation_ = std::move(*loaded);
  note("[" + counted(conversation_.messages().size(), "message") + " from " + std::string(file) +
       "]");
}

}  // namespace berth::cli
