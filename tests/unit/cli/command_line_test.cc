#include "supervisor/cli/command_line.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <fstream>
#include <sstream>

#include "common/manual/completion.h"
#include "common/manual/markdown.h"
#include "supervisor/cli/doctor/subprocess.h"
#include "tests/unit/cli/fake_daemon.h"
#include "tests/unit/cli/test_program.h"

namespace berth::cli {
namespace {

using test::TemporaryDirectory;
using test::TestProgram;

const std::vector<std::string> kVerbs = {
    "chat",     "complete",  "models",      "ps",           "load",         "unload",
    "plan",     "memory",    "pin",         "unpin",        "failures",     "why",
    "retry",    "logs",      "events",      "classify-log", "config check", "config show",
    "keys add", "keys list", "keys revoke", "doctor",       "version",      "completion"};

TEST(CommandLine, HasTheVerbsOfTheContract) {
  std::vector<std::string> names;
  const manual::Command manual = command_manual();
  for (const manual::Command* leaf : manual::leaves(manual)) names.push_back(leaf->name.substr(6));
  EXPECT_EQ(names, kVerbs);
}

TEST(CommandLine, EveryVerbTakesEndpointAndJsonAndSaysWhatItIs) {
  const manual::Command manual = command_manual();
  for (const manual::Command* leaf : manual::leaves(manual)) {
    EXPECT_FALSE(leaf->text.empty()) << leaf->name;
    std::string options;
    for (const manual::Option& option : leaf->options) {
      EXPECT_FALSE(option.text.empty()) << leaf->name << " " << option.names.front();
      options += manual::option_names(option) + "; ";
    }
    for (const manual::Argument& argument : leaf->arguments) {
      EXPECT_FALSE(argument.text.empty()) << leaf->name << " " << argument.name;
    }
    if (leaf->name == "berth completion") continue;
    EXPECT_NE(options.find("--endpoint ENDPOINT"), std::string::npos) << leaf->name;
    EXPECT_NE(options.find("--json"), std::string::npos) << leaf->name;
  }
}

TEST(CommandLine, ANameThatIsNoTextIsRefusedAsThat) {
  for (const char* verb :
       {"chat", "complete", "load", "unload", "failures", "why", "retry", "logs"}) {
    TestProgram program;
    std::vector<std::string> arguments = {verb, "mod\xff"};
    if (std::string(verb) == "complete") arguments.emplace_back("text");
    EXPECT_EQ(program.run(arguments), ExitCode::kUsage) << verb;
    EXPECT_NE(program.err.text.find("is not valid UTF-8 (byte 3)"), std::string::npos)
        << verb << ": " << program.err.text;
  }
}

TEST(CommandLine, HelpGoesToStandardOutputAndIsOk) {
  TestProgram program;
  EXPECT_EQ(program.run({"--help"}), ExitCode::kOk);
  EXPECT_NE(program.out.text.find("Usage: berth VERB"), std::string::npos);
  EXPECT_EQ(program.out.text.find("__"), std::string::npos) << "hidden verbs are hidden";
  for (const char* verb : {"chat", "ps", "doctor"}) {
    EXPECT_EQ(program.run({verb, "--help"}), ExitCode::kOk);
    EXPECT_NE(program.out.text.find("Usage: berth " + std::string(verb)), std::string::npos);
    EXPECT_EQ(program.err.text, "");
  }
  EXPECT_EQ(program.run({"config", "check", "-h"}), ExitCode::kOk);
  EXPECT_NE(program.out.text.find("berth config check [OPTIONS] [FILE]"), std::string::npos);
  EXPECT_EQ(program.run({"--version"}), ExitCode::kOk);
  EXPECT_EQ(program.out.text.substr(0, 6), "berth ");
}

TEST(CommandLine, HelpFitsEightyColumns) {
  TestProgram program;
  for (const std::string& verb : kVerbs) {
    std::vector<std::string> words;
    std::istringstream split(verb);
    for (std::string word; split >> word;) words.push_back(word);
    words.emplace_back("--help");
    ASSERT_EQ(program.run(words), ExitCode::kOk);
    std::istringstream lines(program.out.text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 82U) << line;
  }
}

TEST(CommandLine, WrongUseSaysWhatAndWhereToReadOn) {
  struct Case {
    std::vector<std::string> arguments;
    std::string first_line;
    std::string see;
  };
  const std::vector<Case> cases = {
      {{}, "berth: no verb was given", "'berth --help'"},
      {{"chta"}, "berth: there is no verb 'chta'; nearest: chat", "'berth --help'"},
      {{"config"}, "berth: no verb was given", "'berth config --help'"},
      {{"config", "chekc"},
       "berth: config: there is no verb 'chekc'; nearest: check",
       "'berth config --help'"},
      {{"ps", "--jsno"},
       "berth: ps: there is no option --jsno; nearest: --json",
       "'berth ps --help'"},
      {{"ps", "extra"}, "berth: ps: there is no further argument: 'extra'", "'berth ps --help'"},
      {{"load"}, "berth: load: MODEL is required", "'berth load --help'"},
      {{"complete", "demo"}, "berth: complete: PROMPT is required", "'berth complete --help'"},
      {{"complete", "demo", "x", "--temperature", "hot"},
       "berth: complete: --temperature: expected a number from 0 to 100 or default, not 'hot'",
       "'berth complete --help'"},
      {{"complete", "demo", "x", "--max-tokens", "0"},
       "berth: complete: --max-tokens: expected a whole number of at least 1 or default, not '0'",
       "'berth complete --help'"},
      {{"logs", "demo", "--lines", "-4"},
       "berth: logs: --lines: expected a whole number, not '-4'",
       "'berth logs --help'"},
      {{"completion", "csh"},
       "berth: completion: SHELL: expected bash, zsh or fish, not 'csh'",
       "'berth completion --help'"},
      {{"ps", "--endpoint", "nowhere"},
       "berth: --endpoint: 'nowhere' is not an endpoint: expected unix:PATH or HOST:PORT, e.g. "
       "unix:/run/berth/berth.sock or 127.0.0.1:50061",
       "'berth --help'"},
  };
  for (const Case& one : cases) {
    TestProgram program;
    EXPECT_EQ(program.run(one.arguments), ExitCode::kUsage);
    EXPECT_EQ(program.err.text.substr(0, program.err.text.find('\n')), one.first_line);
    EXPECT_NE(program.err.text.find("see " + one.see), std::string::npos) << program.err.text;
    EXPECT_EQ(program.out.text, "");
  }
}

TEST(CommandLine, WrongEndpointInTheEnvironmentIsWrongUse) {
  TestProgram program;
  program.variables["BERTH_ENDPOINT"] = "nonsense";
  EXPECT_EQ(program.run({"ps"}), ExitCode::kUsage);
  EXPECT_NE(program.err.text.find("berth: BERTH_ENDPOINT: 'nonsense'"), std::string::npos);
}

TEST(CommandLine, PromptMayHoldNamesOfVerbsAndOptionsBehindDashes) {
  test::FakeDaemon daemon;
  std::string prompt;
  daemon.generate = [&](grpc::ServerContext&, const v1::GenerateRequest& request,
                        grpc::ServerWriter<v1::GenerateEvent>& writer) {
    prompt = request.prompt();
    writer.Write(test::done());
    return grpc::Status::OK;
  };
  TestProgram program;
  program.variables["BERTH_ENDPOINT"] = daemon.endpoint();
  ASSERT_EQ(program.run({"complete", "demo", "load", "the", "ps"}), ExitCode::kOk)
      << program.err.text;
  EXPECT_EQ(prompt, "load the ps");
  ASSERT_EQ(program.run({"complete", "demo", "--", "--json", "-x"}), ExitCode::kOk)
      << program.err.text;
  EXPECT_EQ(prompt, "--json -x");
}

TEST(CommandLine, OptionsMayStandBeforeTheVerb) {
  test::FakeDaemon daemon;
  daemon.list_instances = [](grpc::ServerContext&, const v1::ListInstancesRequest&,
                             v1::ListInstancesResponse&) { return grpc::Status::OK; };
  TestProgram program;
  EXPECT_EQ(program.run({"--endpoint", daemon.endpoint(), "--json", "ps"}), ExitCode::kOk)
      << program.err.text;
  EXPECT_EQ(program.out.text, "{\n  \"instances\": []\n}\n");
}

TEST(Manual, DocsAreWhatTheProgramSays) {
  TestProgram program;
  ASSERT_EQ(program.run({"__docs"}), ExitCode::kOk);
  std::ifstream file(BERTH_SOURCE_DIR "/docs/cli.md");
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), program.out.text) << "docs/cli.md is old: run 'berth __docs > docs/cli.md'";
  for (const std::string& verb : kVerbs) {
    EXPECT_NE(text.str().find("\n## berth " + verb + "\n"), std::string::npos) << verb;
  }
}

TEST(Manual, PageHasEveryVerbAndOption) {
  TestProgram program;
  ASSERT_EQ(program.run({"__man"}), ExitCode::kOk);
  const std::string& page = program.out.text;
  EXPECT_EQ(page.substr(0, 15), ".TH \"BERTH\" 1 \"");
  for (const std::string& verb : kVerbs) {
    std::string name = verb;
    if (const std::size_t dash = name.find('-'); dash != std::string::npos) name.insert(dash, "\\");
    EXPECT_NE(page.find(".SS \"berth " + name + "\""), std::string::npos) << verb;
  }
  for (const char* part : {"\\-\\-endpoint", "\\-\\-max\\-tokens", "EXIT STATUS", "ENVIRONMENT",
                           "BERTH_ENDPOINT", "SEE ALSO"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  // A line that begins with a dot or a quote is a request: every one must be known.
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('.') && !line.starts_with('\'')) continue;
    const std::string request = line.substr(0, line.find(' '));
    EXPECT_TRUE(request == ".TH" || request == ".SH" || request == ".SS" || request == ".TP" ||
                request == ".PP" || request == ".EX" || request == ".EE")
        << line;
  }
}

TEST(Manual, GroffHasNothingToSay) {
  if (::access("/usr/bin/groff", X_OK) != 0) GTEST_SKIP() << "no groff";
  const TemporaryDirectory directory;
  TestProgram program;
  ASSERT_EQ(program.run({"__man"}), ExitCode::kOk);
  const std::string path = directory.path() + "/berth.1";
  std::ofstream(path) << program.out.text;
  const Ran ran =
      run_program({"/usr/bin/groff", "-man", "-Tutf8", "-K", "utf-8", "-ww", "-z", path},
                  std::chrono::seconds(60));
  ASSERT_TRUE(ran.started);
  if (ran.output.find("preconv") != std::string::npos) GTEST_SKIP() << ran.output;
  EXPECT_EQ(ran.output, "");
}

// What a shell completes, with the words of a command line; the last one is being typed.
std::string bash_completes(const std::string& script, const std::vector<std::string>& words) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/c.bash";
  std::string text = "berth() { [ \"$1\" = __models ] && printf 'demo\\ndemo-2\\nother\\n'; }\n" +
                     script + "COMP_WORDS=(";
  for (const std::string& word : words) text += "'" + word + "' ";
  text += ")\nCOMP_CWORD=" + std::to_string(words.size() - 1) +
          "\n_berth\nIFS=' '; echo \"${COMPREPLY[*]}\"\n";
  std::ofstream(path) << text;
  const Ran ran = run_program({"/bin/bash", path}, std::chrono::seconds(60));
  return ran.output;
}

TEST(Completion, BashCompletesVerbsOptionsModelsAndChoices) {
  if (::access("/bin/bash", X_OK) != 0) GTEST_SKIP() << "no bash";
  TestProgram program;
  ASSERT_EQ(program.run({"completion", "bash"}), ExitCode::kOk);
  const std::string script = program.out.text;
  EXPECT_EQ(bash_completes(script, {"berth", "c"}),
            "chat complete classify-log config completion\n");
  EXPECT_EQ(bash_completes(script, {"berth", "config", ""}), "check show\n");
  EXPECT_EQ(bash_completes(script, {"berth", "chat", "de"}), "demo demo-2\n");
  EXPECT_EQ(bash_completes(script, {"berth", "chat", "--seed", "3", "o"}), "other\n");
  EXPECT_EQ(bash_completes(script, {"berth", "logs", "demo", "--f"}), "--follow\n");
  EXPECT_EQ(bash_completes(script, {"berth", "logs", "--lines", ""}), "\n");
  EXPECT_EQ(bash_completes(script, {"berth", "completion", ""}), "bash zsh fish\n");
  EXPECT_EQ(bash_completes(script, {"berth", "ps", ""}), "\n");
  EXPECT_EQ(bash_completes(script, {"berth", "config", "show", "--off"}), "--offline\n");
}

TEST(Completion, ZshAndFishScriptsAreWellFormed) {
  const TemporaryDirectory directory;
  TestProgram program;
  struct Shell {
    std::string name;
    std::string path;
    std::string check;
  };
  for (const Shell& shell :
       {Shell{"zsh", "/usr/bin/zsh", "-n"}, Shell{"fish", "/usr/bin/fish", "-n"}}) {
    ASSERT_EQ(program.run({"completion", shell.name}), ExitCode::kOk);
    EXPECT_NE(program.out.text.find("max-tokens"), std::string::npos);
    EXPECT_NE(program.out.text.find("berth __models"), std::string::npos);
    if (::access(shell.path.c_str(), X_OK) != 0) continue;
    const std::string path = directory.path() + "/script";
    std::ofstream(path, std::ios::trunc) << program.out.text;
    const Ran ran = run_program({shell.path, shell.check, path}, std::chrono::seconds(60));
    EXPECT_EQ(ran.status, 0) << ran.output;
    EXPECT_EQ(ran.output, "");
  }
}

}  // namespace
}  // namespace berth::cli
