#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "common/keys/key.h"
#include "common/keys/key_file.h"
#include "common/proto_json/json_writer.h"
#include "common/text.h"
#include "supervisor/catalog/config.h"
#include "supervisor/cli/format/text.h"
#include "supervisor/cli/verbs/verbs.h"

namespace berth::cli {
namespace {

constexpr std::size_t kPathBytes = 4096;

// The file that is meant: --keys-file, else that of the configuration. Errors: what to do.
Result<std::string> key_file(const Environment& environment, const std::string& given) {
  if (!given.empty()) return std::filesystem::absolute(given).lexically_normal().string();
  const std::string config_file =
      environment.non_empty("BERTH_CONFIG").value_or(catalog::default_config_path());
  const catalog::ConfigResult read = catalog::load_config(config_file);
  if (read.config && !read.config->auth.keys_file.empty()) return read.config->auth.keys_file;
  if (read.config) {
    return fail(Reason::kNotFound, config_file +
                                       " names no key file: add `keys_file = \"/etc/berth/keys\"` "
                                       "to its section [auth], or name one with --keys-file");
  }
  return fail(Reason::kInvalidArgument, "no key file is known, as " + config_file +
                                            " cannot be used (" + read.problems.front().message +
                                            "): name one with --keys-file, or the configuration "
                                            "that berthd uses in BERTH_CONFIG (of a demo: "
                                            "DIR/berth.toml)");
}

void write_key(JsonWriter& json, const keys::Key& key) {
  json.member("name", key.name);
  json.member("role", keys::role_name(key.role));
  json.member("tenant_group", key.group);
}

ExitCode refuse(Context& context, const Error& error) {
  // Sentences of the command line begin small and end without a stop.
  std::string message = error.message;
  if (message.ends_with('.')) message.pop_back();
  if (message.starts_with("The")) message.front() = 't';
  if (error.reason == Reason::kInvalidArgument && error.extras) return context.usage(message);
  return context.refuse(message);
}

// Where the file is one that no configuration names, the daemon does not read it.
std::string note_of(const std::string& given, const std::string& file) {
  if (given.empty()) return {};
  return "berth: berthd uses " + printable_line(file, kPathBytes) +
         " where its configuration names it as auth.keys_file\n";
}

}  // namespace

ExitCode run_keys_add(Context& context, const KeysOptions& options) {
  if (auto problem = keys::check_key_name(options.name)) {
    return context.usage("the name of a key " + *problem);
  }
  const auto role = keys::role_from_name(options.role);
  if (!role)
    return context.usage("expected the role client or admin, found '" + options.role + "'");
  if (!options.group.empty()) {
    if (auto problem = keys::check_key_name(options.group)) {
      return context.usage("the tenant group " + *problem);
    }
  }
  const Result<std::string> file = key_file(context.environment(), options.file);
  if (!file) return refuse(context, file.error());
  const Result<std::string> secret = keys::make_key();
  if (!secret) return refuse(context, secret.error());
  const keys::Key key{options.name, *role, options.group, keys::hash_of(*secret)};
  const Status added =
      keys::change_key_file(*file, true, [&](keys::KeyList& list) { return list.add(key); });
  if (!added) return refuse(context, added.error());
  if (const std::string note = keys::note_on_readers(*file); !note.empty()) {
    context.environment().err.write("berth: " + note + "\n");
  }
  if (context.json()) {
    JsonWriter json(JsonWriter::Layout::kIndented);
    json.begin_object();
    write_key(json, key);
    json.member("key", *secret);
    json.member("file", *file);
    json.end_object();
    context.print_json(json.str());
    return ExitCode::kOk;
  }
  context.print(*secret + "\n");
  context.environment().err.write("berth: this is the only time that the key of " + options.name +
                                  " is shown\n" + note_of(options.file, *file));
  return ExitCode::kOk;
}

ExitCode run_keys_list(Context& context, const KeysOptions& options) {
  const Result<std::string> file = key_file(context.environment(), options.file);
  if (!file) return refuse(context, file.error());
  const Result<keys::KeyFile> read = keys::read_key_file(*file);
  if (!read) return refuse(context, read.error());
  const std::vector<keys::Key> keys = read->list.keys();
  if (!read->warning.empty()) {
    context.environment().err.write("berth: " + printable_line(read->warning, kPathBytes) + "\n");
  }
  if (context.json()) {
    JsonWriter json(JsonWriter::Layout::kIndented);
    json.begin_object();
    json.member("file", *file);
    json.key("keys");
    json.begin_array();
    for (const keys::Key& key : keys) {
      json.begin_object();
      write_key(json, key);
      json.end_object();
    }
    json.end_array();
    json.end_object();
    context.print_json(json.str());
    return ExitCode::kOk;
  }
  if (keys.empty()) {
    context.print("there are no keys in " + *file + "\n");
    return ExitCode::kOk;
  }
  Table table({{"NAME"}, {"ROLE"}, {"TENANT GROUP"}});
  for (const keys::Key& key : keys) {
    table.add({{key.name},
               {std::string(keys::role_name(key.role))},
               {key.group.empty() ? "-" : key.group}});
  }
  context.print_table(table);
  return ExitCode::kOk;
}

ExitCode run_keys_revoke(Context& context, const KeysOptions& options) {
  const Result<std::string> file = key_file(context.environment(), options.file);
  if (!file) return refuse(context, file.error());
  const Status removed = keys::change_key_file(
      *file, false, [&](keys::KeyList& list) { return list.remove(options.name); });
  if (!removed) return refuse(context, removed.error());
  if (context.json()) {
    JsonWriter json(JsonWriter::Layout::kIndented);
    json.begin_object();
    json.member("name", options.name);
    json.key("revoked");
    json.truth(true);
    json.member("file", *file);
    json.end_object();
    context.print_json(json.str());
    return ExitCode::kOk;
  }
  context.print("the key " + options.name + " is revoked\n");
  return ExitCode::kOk;
}

}  // namespace berth::cli
