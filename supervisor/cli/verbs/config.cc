#include <string>
#include <vector>

#include "common/proto_json/json_writer.h"
#include "common/text.h"
#include "supervisor/catalog/config.h"
#include "supervisor/catalog/config_warnings.h"
#include "supervisor/cli/format/text.h"
#include "supervisor/cli/verbs/verbs.h"

namespace berth::cli {
namespace {

constexpr std::size_t kLineBytes = 4096;

// The file that is meant where none is named, as berthd finds it.
std::string file_or_default(const std::string& given) {
  return given.empty() ? catalog::default_config_path() : given;
}

void write_setting(JsonWriter& json, const catalog::Setting& setting) {
  json.begin_object();
  json.member("key", setting.key);
  json.member("value", setting.value);
  json.member("source", setting.source);
  json.end_object();
}

std::string check_json(const std::string& file, const catalog::ConfigResult& read,
                       const std::vector<std::string>& warnings) {
  JsonWriter json(JsonWriter::Layout::kIndented);
  json.begin_object();
  json.member("file", file);
  json.key("valid");
  json.truth(read.config.has_value());
  json.key("problems");
  json.begin_array();
  for (const catalog::ConfigProblem& problem : read.problems) {
    json.begin_object();
    json.member("file", problem.file);
    json.key("line");
    json.unsigned_integer(problem.line);
    json.member("key", problem.key);
    json.member("message", problem.message);
    json.end_object();
  }
  json.end_array();
  json.key("ignored");
  json.begin_array();
  if (read.config) {
    for (const catalog::Setting& setting : read.config->ignored) write_setting(json, setting);
  }
  json.end_array();
  json.key("warnings");
  json.begin_array();
  for (const std::string& warning : warnings) json.text(warning);
  json.end_array();
  json.end_object();
  return json.str();
}

v1::EffectiveConfig to_message(const catalog::Config& config) {
  v1::EffectiveConfig message;
  for (const catalog::Setting& setting : config.settings) {
    v1::Setting& to = *message.add_settings();
    to.set_key(setting.key);
    to.set_value(setting.value);
    to.set_source(setting.source);
  }
  return message;
}

// Problems stand at the beginning of their lines, as editors and people know them of compilers.
ExitCode refuse_file(Context& context, const std::string& file, const catalog::ConfigResult& read) {
  const ExitCode code =
      context.refuse(file + " is not valid: " + counted(read.problems.size(), "problem"));
  for (const catalog::ConfigProblem& problem : read.problems) {
    context.environment().err.write(printable_line(problem.to_string(), kLineBytes) + "\n");
  }
  return code;
}

void print_settings(Context& context, const v1::EffectiveConfig& config) {
  if (context.json()) {
    context.print_json(config, JsonWriter::Layout::kIndented);
    return;
  }
  Table table({{"SETTING"}, {"VALUE", false, true}, {"FROM"}});
  for (const v1::Setting& setting : config.settings()) {
    const bool is_default = setting.source() == "default";
    table.add(
        {{printable_line(setting.key(), kLineBytes)},
         {printable_line(setting.value(), kLineBytes)},
         {printable_line(setting.source(), kLineBytes), is_default ? Style::kDim : Style::kPlain}});
  }
  context.print_table(table);
}

}  // namespace

ExitCode run_config_check(Context& context, const ConfigCheckOptions& options) {
  const std::string file = file_or_default(options.file);
  const catalog::ConfigResult read = catalog::load_config(file);
  std::vector<std::string> warnings;
  if (read.config) warnings = catalog::config_warnings(*read.config);
  if (context.json()) context.print_json(check_json(file, read, warnings));
  if (!read.config) {
    return refuse_file(context, file, read);
  }
  if (context.json()) return ExitCode::kOk;
  for (const catalog::Setting& setting : read.config->ignored) {
    context.environment().err.write(
        printable_line(setting.source + ": " + setting.key +
                           ": warning: valid, but this version has no use for it yet",
                       kLineBytes) +
        "\n");
  }
  for (const std::string& warning : warnings) {
    context.environment().err.write(printable_line(file + ": warning: " + warning, kLineBytes) +
                                    "\n");
  }
  context.print(file + " is valid\n");
  return ExitCode::kOk;
}

ExitCode run_config_show(Context& context, const ConfigShowOptions& options) {
  if (!options.file.empty() || options.offline) {
    const std::string file = file_or_default(options.file);
    const catalog::ConfigResult read = catalog::load_config(file);
    if (!read.config) {
      return refuse_file(context, file, read);
    }
    print_settings(context, to_message(*read.config));
    return ExitCode::kOk;
  }
  auto client = context.client();
  if (!client) {
    const ExitCode code = context.fail(client.error());
    context.environment().err.write("  'berth config show --offline' reads the file instead\n");
    return code;
  }
  const auto reply = (*client)->effective_config();
  if (!reply) return context.fail(reply.error());
  print_settings(context, *reply);
  return ExitCode::kOk;
}

}  // namespace berth::cli
