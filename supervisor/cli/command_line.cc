#include "supervisor/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <utility>

#include "common/manual/completion.h"
#include "common/manual/markdown.h"
#include "common/text.h"
#include "common/version.h"
#include "supervisor/catalog/model.h"
#include "supervisor/cli/chat/chat.h"
#include "supervisor/cli/chat/settings.h"
#include "supervisor/cli/doctor/doctor.h"
#include "supervisor/cli/verbs/verbs.h"

namespace berth::cli {
namespace {

// Options of every verb; only the one that was given is read.
struct Parsed {
  CommonOptions common;
  ChatOptions chat;
  CompleteOptions complete;
  LoadOptions load;
  LoadOptions retry;
  FailuresOptions failures;
  WhyOptions why;
  UnloadOptions unload;
  PlanOptions plan;
  PinOptions pin;
  PinOptions unpin;
  LogsOptions logs;
  EventsOptions events;
  ClassifyLogOptions classify_log;
  ConfigCheckOptions config_check;
  ConfigShowOptions config_show;
  KeysOptions keys;
  std::string shell;
  // What the verb that was given sets.
  std::function<ExitCode(Context&)> verb;
  bool needs_endpoint = true;
};

// The tree of verbs. Owns the parser and what it fills; not to be moved.
class CommandLine {
 public:
  CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  CLI::App& app() { return app_; }
  Parsed& parsed() { return parsed_; }

 private:
  CLI::App* add(CLI::App& parent, const char* name, const char* text, const char* details,
                std::function<ExitCode(Context&)> verb, bool needs_endpoint = true);
  void add_hidden(const char* name, std::function<ExitCode(Context&)> verb, bool needs_endpoint);
  void set_verb(CLI::App& sub, std::function<ExitCode(Context&)> verb, bool needs_endpoint);
  void add_sampling(CLI::App& verb, SamplingOptions& sampling);
  void add_asking();
  void add_models();
  void add_memory();
  void check_model_names();
  void add_failures();
  void add_watching();
  void add_config();
  void add_keys();
  void add_about();

  CLI::App app_;
  Parsed parsed_;
};

CLI::App* CommandLine::add(CLI::App& parent, const char* name, const char* text,
                           const char* details, std::function<ExitCode(Context&)> verb,
                           bool needs_endpoint) {
  CLI::App* sub = parent.add_subcommand(name, text);
  sub->footer(details);
  sub->add_option("--endpoint", parsed_.common.endpoint,
                  "The daemon to talk to: unix:PATH or HOST:PORT. Without it: BERTH_ENDPOINT, "
                  "else the first listener in the configuration, else the usual socket")
      ->type_name("ENDPOINT");
  sub->add_option("--api-key-file", parsed_.common.api_key_file,
                  "File with the key to come with, alone on its first line; without it: "
                  "BERTH_API_KEY")
      ->type_name("FILE");
  sub->add_option("--tls-ca", parsed_.common.tls_ca,
                  "Speak TLS with HOST:PORT, whose certificate one of this file (PEM) has signed; "
                  "without it: BERTH_TLS_CA")
      ->type_name("FILE");
  sub->add_flag("--json", parsed_.common.json,
                "Print JSON: one document, or one line for each event of a stream");
  set_verb(*sub, std::move(verb), needs_endpoint);
  return sub;
}

void CommandLine::set_verb(CLI::App& sub, std::function<ExitCode(Context&)> verb,
                           bool needs_endpoint) {
  sub.callback([this, verb = std::move(verb), needs_endpoint] {
    parsed_.verb = verb;
    parsed_.needs_endpoint = needs_endpoint;
  });
}

void CommandLine::add_hidden(const char* name, std::function<ExitCode(Context&)> verb,
                             bool needs_endpoint) {
  CLI::App* sub = app_.add_subcommand(name, "");
  sub->group("");
  sub->add_option("--endpoint", parsed_.common.endpoint);
  set_verb(*sub, std::move(verb), needs_endpoint);
}

void CommandLine::add_sampling(CLI::App& verb, SamplingOptions& sampling) {
  // By the same function as /set of a chat: one place knows the ranges.
  const auto setting = [&](const std::string& option, const std::string& name, const char* text,
                           const char* value) {
    verb.add_option_function<std::string>(
            option,
            [&sampling, option, name](const std::string& given) {
              if (const auto set = change_setting(sampling, name, given); !set) {
                const std::string& message = set.error().message;
                throw CLI::ValidationError(option, message.substr(message.find(": ") + 2));
              }
            },
            text)
        ->type_name(value);
  };
  setting("--max-tokens", "max_tokens", "Stop after so many tokens", "N");
  setting("--temperature", "temperature",
          "How far the choice of tokens may stray, 0 to 100; 0 always takes the likeliest one "
          "(default: 0.8)",
          "X");
  setting("--top-k", "top_k",
          "Choose among so many of the likeliest tokens; 0: among all (default: 40)", "N");
  setting("--top-p", "top_p",
          "Choose among the likeliest tokens that have this probability together, above 0, to 1 "
          "(default: 0.95)",
          "X");
  setting("--seed", "seed", "Seed of the choice: the same one gives the same answer again", "N");
  verb.add_option("--stop", sampling.stop,
                  "Stop before this text, which is not printed; may be given up to 16 times")
      ->type_name("TEXT")
      ->expected(1, 16)
      ->allow_extra_args(false);
}

void CommandLine::add_asking() {
  CLI::App* chat =
      add(app_, "chat", "Talk with a model",
          "With a PROMPT it answers once. Without one it is a conversation on the terminal, with "
          "line editing and a history; /help there lists its commands. Ctrl-C stops an answer and "
          "not the program. Where the standard input is no terminal, all of it is the question.\n\n"
          "  berth chat demo\n"
          "  berth chat demo \"What is the capital of France?\"\n"
          "  berth chat demo \"Summarise this text:\" - < notes.txt",
          [this](Context& context) { return run_chat(context, parsed_.chat); });
  chat->add_option("MODEL", parsed_.chat.model, "Name or alias of a model that can chat")
      ->required();
  chat->add_option("PROMPT", parsed_.chat.prompt,
                   "The question; its words are joined by blanks, and - is the standard input")
      ->expected(0, -1);
  chat->add_option("--system", parsed_.chat.system, "How the model is to answer")
      ->type_name("TEXT");
  add_sampling(*chat, parsed_.chat.sampling);
  chat->add_flag("-v,--verbose", parsed_.chat.verbose,
                 "Tell tokens and times after an answer, and progress also where there is no "
                 "terminal");

  CLI::App* complete =
      add(app_, "complete", "Continue a text",
          "Prints what the model writes behind the text, as it comes, and ends it with a newline. "
          "The text is given to the model as it is, without a chat template.\n\n"
          "  berth complete demo \"Once upon a time\" --max-tokens 40\n"
          "  berth complete demo - < draft.txt",
          [this](Context& context) { return run_complete(context, parsed_.complete); });
  complete->add_option("MODEL", parsed_.complete.model, "Name or alias of the model")->required();
  complete
      ->add_option("PROMPT", parsed_.complete.prompt,
                   "The text; its words are joined by blanks, and - is the standard input")
      ->required()
      ->expected(1, -1);
  add_sampling(*complete, parsed_.complete.sampling);
  complete->add_flag("-v,--verbose", parsed_.complete.verbose,
                     "Tell tokens and times at the end, and progress also where there is no "
                     "terminal");
}

void CommandLine::add_models() {
  add(app_, "models", "List the models that there are",
      "A model that cannot be used is listed with the reason.", run_models);
  add(app_, "ps", "List the models that are loaded or loading",
      "MEMORY is what the worker allocated for weights, KV cache and working buffers; RESIDENT is "
      "what the kernel says it and what it started hold; CHARGED what the memory plan counts for "
      "it. "
      "UNLOAD IN is the time until an idle model is unloaded.",
      run_ps);
  CLI::App* load = add(app_, "load", "Load a model and wait until it is ready",
                       "Ctrl-C ends only the waiting: the load goes on.",
                       [this](Context& context) { return run_load(context, parsed_.load); });
  load->add_option("MODEL", parsed_.load.model, "Name or alias of the model")->required();
  load->add_flag("--no-wait", parsed_.load.no_wait, "Return when the load has begun");
  load->add_flag("-v,--verbose", parsed_.load.verbose,
                 "Tell the progress in lines where there is no terminal");
  CLI::App* unload = add(app_, "unload", "Unload a model and wait until its process is gone", "",
                         [this](Context& context) { return run_unload(context, parsed_.unload); });
  unload->add_option("MODEL", parsed_.unload.model, "Name or alias of the model")->required();
  unload->add_flag("--force", parsed_.unload.force,
                   "Also when requests run on it or wait for it; they fail");
}

void CommandLine::add_memory() {
  CLI::App* plan = add(
      app_, "plan", "Say what a request for a model would do to the memory; nothing is done",
      "By the planner that decides when somebody asks: whether the model fits, what is stopped for "
      "it and in which order, what it waits for, or why it is refused; the served window and what "
      "bound it; what it takes of each memory and where those numbers come from. Ends with 0 "
      "where requests are served: it is there, fits, or gets room at once or after a wait; with 1 "
      "where it is refused, its files cannot be loaded, or a failure stands against it. With "
      "--context or --sequences: as if the configuration said so, and its own instance were "
      "gone.\n\n"
      "  berth plan demo\n"
      "  berth plan demo --context 32768",
      [this](Context& context) { return run_plan(context, parsed_.plan); });
  plan->add_option("MODEL", parsed_.plan.model, "Name or alias of the model")->required();
  plan->add_option("--context", parsed_.plan.context, "Tokens of its window, 16 to 16777216")
      ->type_name("N")
      ->check(CLI::Range(catalog::kMinContext, catalog::kMaxContext).description(""));
  plan->add_option("--sequences", parsed_.plan.sequences,
                   "Requests that it answers at the same time, 1 to 1024")
      ->type_name("N")
      ->check(CLI::Range(1U, catalog::kMaxSequences).description(""));
  add(app_, "memory", "Show each memory and who has what of it",
      "A bar and a line for each domain (the host's memory, each device's): what models are "
      "charged "
      "for weights, KV cache, working buffers and processes, what kept sessions and other programs "
      "have, what is free for models. Then every instance that is charged, and who waits for "
      "memory.",
      run_memory);
  CLI::App* pin = add(app_, "pin", "Keep a model loaded, whoever else asks",
                      "It is not unloaded for idleness or for others until it is unpinned or the "
                      "server ends. Refused where it does not fit beside all that is pinned. Loads "
                      "nothing.",
                      [this](Context& context) { return run_pin(context, parsed_.pin); });
  pin->add_option("MODEL", parsed_.pin.model, "Name or alias of the model")->required();
  CLI::App* unpin = add(app_, "unpin", "Let a pinned model go again",
                        "One that the configuration pins stays pinned.",
                        [this](Context& context) { return run_unpin(context, parsed_.unpin); });
  unpin->add_option("MODEL", parsed_.unpin.model, "Name or alias of the model")->required();
}

void CommandLine::add_failures() {
  CLI::App* failures = add(
      app_, "failures", "List the models whose load failed and is not tried again",
      "A load that failed by itself is remembered, and as long as the failure stands the model "
      "is not tried: 'berth why MODEL' tells all of one, 'berth retry MODEL' tries it again.\n\n"
      "  berth failures\n"
      "  berth failures demo --all",
      [this](Context& context) { return run_failures(context, parsed_.failures); });
  failures->add_option("MODEL", parsed_.failures.model, "Only of this model");
  failures->add_flag("--all", parsed_.failures.all,
                     "Also those that do not stand any more, with what lifted them");
  failures
      ->add_option("--limit", parsed_.failures.limit, "At most so many, 1 to 1000 (default: 100)")
      ->type_name("N")
      ->check(CLI::Range(1, 1000).description(""));
  CLI::App* why = add(
      app_, "why", "Tell why a model is or is not served, or what became of a request",
      "Its state now; the failure that stands with its class, reason, exit, memory, log and what "
      "lifts it; the failures before that and how the last loads went. Ends with 0 also where "
      "nothing is wrong. With the id of a request, which its error and the events have: how it "
      "ended, and its events, as long as they are kept.\n\n"
      "  berth why demo\n"
      "  berth why 01a22bb5-9117-74f4-8cf1-93fe16d3df9e",
      [this](Context& context) { return run_why(context, parsed_.why); });
  why->add_option("MODEL", parsed_.why.model, "Name or alias of the model, or a request's id")
      ->required();
  CLI::App* retry =
      add(app_, "retry", "Lift a model's failure, load it and wait until it is ready",
          "Ends with 1 and the reason when it fails again, which makes a new record. Ctrl-C ends "
          "only the waiting: the load goes on.",
          [this](Context& context) { return run_retry(context, parsed_.retry); });
  retry->add_option("MODEL", parsed_.retry.model, "Name or alias of the model")->required();
  retry->add_flag("--no-wait", parsed_.retry.no_wait, "Return when the load has begun");
  retry->add_flag("-v,--verbose", parsed_.retry.verbose,
                  "Tell the progress in lines where there is no terminal");
}

void CommandLine::add_watching() {
  CLI::App* logs =
      add(app_, "logs", "Show what a model's worker wrote", "  berth logs demo --lines 50 -f",
          [this](Context& context) { return run_logs(context, parsed_.logs); });
  logs->add_option("MODEL", parsed_.logs.model, "Name or alias of the model")->required();
  logs->add_flag("-f,--follow", parsed_.logs.follow, "Go on with what is written from now on");
  logs->add_option("-n,--lines", parsed_.logs.lines,
                   "Begin so many lines before the end; 0: at the beginning (default: 200)")
      ->type_name("N");
  CLI::App* events =
      add(app_, "events", "Show what happened and happens in the daemon",
          "Every change of state is an event, printed as the daemon logs it. Without --since: the "
          "last 200.\n\n"
          "  berth events -f --prefix load.\n"
          "  berth events --since 10m",
          [this](Context& context) { return run_events(context, parsed_.events); });
  events->add_flag("-f,--follow", parsed_.events.follow, "Go on with what happens from now on");
  events
      ->add_option("--since", parsed_.events.since,
                   "Only events from then on: a duration (10m, 2h) or RFC 3339 "
                   "(2026-01-02T03:04:05Z)")
      ->type_name("TIME");
  events->add_option("--prefix", parsed_.events.prefix, "Only events whose name begins so")
      ->type_name("TEXT");
  CLI::App* classify = add(
      app_, "classify-log", "Say what a log tells of a load that failed; needs no daemon",
      "Reads the log of a program that was to serve a model, as the daemon reads it while the "
      "model "
      "loads, and prints the first line that says that the load cannot succeed: its class "
      "(permanent, resource, crash or launch), the Python exception, the reason as it is passed on "
      "(no "
      "path, at most 300 bytes) and the line's number. 'no verdict' is an answer, too: both end "
      "with 0. It judges all that it reads: of a model's log, where each load begins with a line "
      "'== berth', give it the last load only.\n\n"
      "  berth classify-log worker.log\n"
      "  berth logs demo --lines 0 | tac | sed '/^== berth /q' | tac | berth classify-log\n"
      "  berth classify-log worker.log --fatal RuntimeError --fatal pkg.LoadError",
      [this](Context& context) { return run_classify_log(context, parsed_.classify_log); }, false);
  classify->add_option("FILE", parsed_.classify_log.file,
                       "The log (default, and with -: the standard input)");
  classify
      ->add_option("--fatal", parsed_.classify_log.fatal,
                   "A Python exception that is fatal, by its whole printed name; may be given more "
                   "than once (default: ValueError, ModuleNotFoundError, ImportError)")
      ->type_name("NAME")
      ->expected(1, 64)
      ->allow_extra_args(false);
}

void CommandLine::add_config() {
  CLI::App* config = app_.add_subcommand("config", "Check or show the configuration");
  config->require_subcommand(1);
  CLI::App* check = add(
      *config, "check", "Check a configuration file; needs no daemon",
      "Tells every problem as FILE:LINE: KEY: what was expected. Warns of files that are named and "
      "not "
      "there, of models that cannot be used and of files that lose their own name; ends with 0 "
      "then.",
      [this](Context& context) { return run_config_check(context, parsed_.config_check); }, false);
  check->add_option("FILE", parsed_.config_check.file,
                    "The file (default: BERTH_CONFIG, else /etc/berth/berth.toml)");
  CLI::App* show =
      add(*config, "show", "Show every setting's value and where it comes from",
          "Of the daemon; with FILE or --offline of the file, as the daemon would read it.",
          [this](Context& context) { return run_config_show(context, parsed_.config_show); });
  show->add_option("FILE", parsed_.config_show.file, "Read this file instead of asking the daemon");
  show->add_flag("--offline", parsed_.config_show.offline,
                 "Read the configured file instead of asking the daemon");
}

void CommandLine::add_keys() {
  CLI::App* keys = app_.add_subcommand("keys", "Make, list and revoke keys of the network clients");
  keys->require_subcommand(1);
  CLI::App* made = add(
      *keys, "add", "Make a key and print it, once",
      "The file keeps only its hash. The daemon takes it within a moment. Needs no daemon; where "
      "the file is missing it is made.\n\n"
      "  berth keys add alice\n"
      "  berth keys add ops --role admin --group team-a",
      [this](Context& context) { return run_keys_add(context, parsed_.keys); }, false);
  made->add_option("NAME", parsed_.keys.name, "A name for the key: letters, digits, '.', '_', '-'")
      ->required();
  made->add_option("--role", parsed_.keys.role,
                   "client, or admin, who may also load and unload models and see logs (default: "
                   "client)")
      ->type_name("ROLE");
  made->add_option("--group", parsed_.keys.group,
                   "Keys of one group share their sessions; without it the key has its own")
      ->type_name("GROUP");
  CLI::App* list = add(
      *keys, "list", "List the keys by name, role and group", "Needs no daemon.",
      [this](Context& context) { return run_keys_list(context, parsed_.keys); }, false);
  CLI::App* revoke = add(
      *keys, "revoke", "Take a key away",
      "Requests with it are refused from then on; what runs already goes on. Needs no daemon.",
      [this](Context& context) { return run_keys_revoke(context, parsed_.keys); }, false);
  revoke->add_option("NAME", parsed_.keys.name, "The key's name")->required();
  for (CLI::App* verb : {made, list, revoke}) {
    verb->add_option("--keys-file", parsed_.keys.file,
                     "The file (default: auth.keys_file of the configuration)")
        ->type_name("FILE");
  }
}

void CommandLine::add_about() {
  add(app_, "doctor", "Find out what is wrong with this installation",
      "Looks at the daemon, the worker, the kernel, limits, disks, permissions, memory and "
      "devices; each line says ok, warning or error, and what to do. Works without a daemon, "
      "too.",
      run_doctor, false);
  add(app_, "version", "Show the versions of berth and of the daemon", "", run_version);

  CLI::App* completion = app_.add_subcommand("completion", "Print a script for your shell");
  completion->footer(
      "It completes verbs, options and names of models.\n\n"
      "  source <(berth completion bash)\n"
      "  berth completion fish > ~/.config/fish/completions/berth.fish");
  completion->add_option("SHELL", parsed_.shell, "The shell")
      ->required()
      ->type_name("bash|zsh|fish")
      ->check([](const std::string& shell) {
        return shell == "bash" || shell == "zsh" || shell == "fish"
                   ? std::string()
                   : "expected bash, zsh or fish, not '" + shell + "'";
      });
  set_verb(
      *completion,
      [this](Context& context) {
        const manual::Command manual = command_manual();
        constexpr std::string_view kModels = "berth __models";
        context.environment().out.write(
            parsed_.shell == "bash"  ? manual::bash_completion(manual, kModels)
            : parsed_.shell == "zsh" ? manual::zsh_completion(manual, kModels)
                                     : manual::fish_completion(manual, kModels));
        return ExitCode::kOk;
      },
      false);

  add_hidden("__models", run_model_names, true);
  add_hidden(
      "__man",
      [](Context& context) {
        context.environment().out.write(manual::man_page(command_manual(), man_page_texts()));
        return ExitCode::kOk;
      },
      false);
  add_hidden(
      "__docs",
      [](Context& context) {
        context.environment().out.write(manual::markdown_page(
            command_manual(), man_page_texts(),
            "Made by `berth __docs` from the command line itself; a test compares them."));
        return ExitCode::kOk;
      },
      false);
}

CommandLine::CommandLine()
    : app_("Command line of berthd, which serves local language models on this machine.", "berth") {
  app_.formatter_fn([](const CLI::App* app, const std::string& /*name*/, CLI::AppFormatMode) {
    return manual::help(manual::describe(*app));
  });
  app_.set_help_flag("-h,--help", "Show this and end");
  app_.set_version_flag("--version",
                        "berth " + std::string(kVersion) + " (" + std::string(kBuildId) + ")",
                        "Print the version and end");
  app_.require_subcommand(1);
  app_.add_option("--endpoint", parsed_.common.endpoint)->group("");
  app_.add_flag("--json", parsed_.common.json)->group("");
  app_.footer("'berth VERB --help' tells more about a verb.");
  add_asking();
  add_models();
  add_memory();
  add_failures();
  add_watching();
  add_config();
  add_keys();
  add_about();
  check_model_names();
}

// What protobuf cannot carry would not arrive as what it is.
void CommandLine::check_model_names() {
  const CLI::Validator is_text(
      [](const std::string& name) {
        if (name.empty()) return std::string("the name is empty");
        const auto at = first_invalid_utf8(name);
        return at ? "the name is not valid UTF-8 (byte " + std::to_string(*at) + ")"
                  : std::string();
      },
      "");
  for (CLI::App* verb : app_.get_subcommands({})) {
    for (CLI::Option* option : verb->get_options()) {
      if (option->get_name() == "MODEL") option->check(is_text);
    }
  }
}

// The innermost verb that was given, or the program.
CLI::App* innermost(CLI::App& app) {
  CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return at;
}

std::vector<std::string> known_options(const manual::Command& command) {
  std::vector<std::string> names;
  for (const manual::Option& option : command.options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

// "config check: "; empty for the program itself.
std::string verb_prefix(const manual::Command& command) {
  const std::size_t blank = command.name.find(' ');
  return blank == std::string::npos ? std::string() : command.name.substr(blank + 1) + ": ";
}

// CLI11's own words, where they are not those of a person.
std::string describe_problem(const CLI::ParseError& problem) {
  constexpr std::string_view kConvert = "Could not convert: ";
  std::string message = problem.what();
  if (!message.starts_with(kConvert)) return message;
  message.erase(0, kConvert.size());
  const std::size_t equals = message.find(" = ");
  if (equals == std::string::npos) return message;
  return message.substr(0, equals) + ": expected a whole number, not '" +
         message.substr(equals + 3) + "'";
}

// What a word that fits nowhere may have been meant as.
std::string describe_unknown(const CLI::App& verb, const std::string& word) {
  const manual::Command command = manual::describe(verb);
  const std::string shown = printable_line(word, 64);
  const std::string of_verb = verb_prefix(command);
  const auto nearest = [](const std::string& wanted, const std::vector<std::string>& names) {
    const auto near = nearest_names(wanted, names);
    return near.empty() ? std::string() : "; nearest: " + join_names(near);
  };
  if (word.starts_with('-')) {
    const std::string name = word.substr(0, word.find('='));
    return of_verb + "there is no option " + shown + nearest(name, known_options(command));
  }
  if (!command.commands.empty()) {
    std::vector<std::string> names;
    for (const manual::Command& below : command.commands) names.push_back(below.verb());
    return of_verb + "there is no verb '" + shown + "'" + nearest(word, names);
  }
  return of_verb + "there is no further argument: '" + shown + "'";
}

Invocation wrong_use(CLI::App& app, const CLI::ParseError& problem) {
  const CLI::App* verb = innermost(app);
  const manual::Command command = manual::describe(*verb);
  Invocation invocation;
  invocation.kind = Invocation::Kind::kUsage;
  const std::vector<std::string> left = app.remaining(true);
  const auto word =
      std::find_if(left.begin(), left.end(), [](const std::string& one) { return one != "--"; });
  if (word != left.end()) {
    invocation.text = describe_unknown(*verb, *word);
  } else if (!command.commands.empty()) {
    invocation.text = "no verb was given";
    invocation.hints.push_back("usage: " + manual::usage(command));
  } else {
    invocation.text = verb_prefix(command) + printable_line(describe_problem(problem), 1024);
    invocation.hints.push_back("usage: " + manual::usage(command));
  }
  invocation.hints.push_back("see '" + command.name + " --help'");
  return invocation;
}

}  // namespace

Invocation parse_command_line(const std::vector<std::string>& arguments) {
  // Outlives the verb, which reads its options.
  auto line = std::make_shared<CommandLine>();
  Invocation invocation;
  try {
    line->app().parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForVersion& version) {
    invocation.kind = Invocation::Kind::kPrint;
    invocation.text = std::string(version.what()) + "\n";
    return invocation;
  } catch (const CLI::CallForHelp&) {
    invocation.kind = Invocation::Kind::kPrint;
    invocation.text = innermost(line->app())->help();
    return invocation;
  } catch (const CLI::ParseError& problem) {
    return wrong_use(line->app(), problem);
  }
  invocation.kind = Invocation::Kind::kVerb;
  invocation.common = line->parsed().common;
  invocation.needs_endpoint = line->parsed().needs_endpoint;
  invocation.verb = [line](Context& context) { return line->parsed().verb(context); };
  return invocation;
}

manual::Command command_manual() {
  CommandLine line;
  return manual::describe(line.app());
}

manual::ManPage man_page_texts() {
  manual::ManPage page;
  page.source = "berth " + std::string(kVersion);
  page.summary = "talk to berthd, which serves local language models";
  page.sections = {
      {"EXIT STATUS",
       {{"0", "It worked."},
        {"1",
         "The answer is no: it failed or was refused. The reason is on the standard error, the "
         "first line as 'berth: MESSAGE'."},
        {"2", "The command line is wrong."},
        {"3", "The daemon cannot be reached, or the connection to it broke."},
        {"130", "Ctrl-C."}}},
      {"JSON",
       {{"--json",
         "Field names are those of the messages in proto/berth/v1. Numbers of 64 bits are numbers; "
         "plain fields are there also when they are 0 or empty; messages and optional fields are "
         "there only when they are set. Streams (chat, complete, load, retry, logs, events) print "
         "one "
         "object a line. A refusal is printed as {\"error\": {…}}, besides the text on the "
         "standard error."}}},
      {"ENVIRONMENT",
       {{"BERTH_ENDPOINT", "The daemon to talk to, where --endpoint is not given."},
        {"BERTH_API_KEY", "The key to come with to HOST:PORT, where --api-key-file is not given."},
        {"BERTH_TLS_CA",
         "Certificates (PEM) that sign the daemon's, where --tls-ca is not given: TLS is spoken "
         "with HOST:PORT."},
        {"BERTH_CONFIG", "The configuration file, instead of /etc/berth/berth.toml."},
        {"NO_COLOR", "No colours, also on a terminal."},
        {"XDG_STATE_HOME", "Where the history of chats is kept (berth/history)."},
        {"XDG_RUNTIME_DIR", "Where a daemon of your own listens (berth/berth.sock)."}}},
      {"FILES",
       {{"/etc/berth/berth.toml",
         "The configuration of the daemon; its first listener is the one "
         "to talk to."},
        {"/run/berth/berth.sock", "The usual socket."},
        {"~/.local/state/berth/history",
         "What was typed in chats: at most 1000 entries, readable by its owner alone."},
        {"~/.editrc", "Keys of the line editor, as editrc(5) says."}}},
  };
  page.see_also = {"berthd(8)", "editrc(5)"};
  return page;
}

}  // namespace berth::cli
