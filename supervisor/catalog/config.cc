#include "supervisor/catalog/config.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "common/text.h"
#include "supervisor/catalog/config_file.h"
#include "supervisor/catalog/listen_address.h"
#include "supervisor/catalog/placeholders.h"
#include "supervisor/catalog/setting_table.h"
#include "supervisor/catalog/setting_value.h"
#include "supervisor/catalog/toml_document.h"

namespace berth::catalog {
namespace {

constexpr std::size_t kMaxProblems = 50;
constexpr std::size_t kMaxModelSections = 4096;
constexpr std::size_t kMaxShownKey = 200;  // bytes of a key in a message

// One document that settings are read from; later layers override earlier ones.
struct Layer {
  const TomlNode* root = nullptr;
  std::string name;    // of the file as it was given; or the whole provenance, "demo"
  std::string folder;  // absolute; anchors relative paths
  bool is_file = true;

  [[nodiscard]] std::string source(std::uint32_t line) const {
    return is_file ? name + ":" + std::to_string(line) : name;
  }
};

// The last layer that sets a setting.
struct Found {
  const TomlNode* node = nullptr;
  const Layer* layer = nullptr;
};

using FoundSettings = std::map<const SettingSpec*, Found>;

// A checked setting.
struct Effective {
  SettingValue value;
  std::string source;
  const Layer* layer = nullptr;  // null: built in
  std::uint32_t line = 0;
};

using EffectiveSettings = std::map<const SettingSpec*, Effective>;

std::string section_name(Section section, const std::string& instance) {
  std::string name(section_spec(section).name);
  if (!instance.empty()) name += "." + toml_quote(instance);
  return name;
}

std::string shown(std::string_view key) {
  return printable_line(key, kMaxShownKey);
}

// Reads layers into a Config. Lives for one reading; any thread.
class Reader {
 public:
  explicit Reader(std::vector<Layer> layers) : layers_(std::move(layers)) {}

  ConfigResult read() {
    for (const Layer& layer : layers_) read_document(layer);
    Config config;
    if (!layers_.empty() && layers_.back().is_file) config.file = layers_.back().name;
    build(config);
    check_whole(config);
    return finish(std::move(config));
  }

 private:
  void problem(const Layer* layer, std::uint32_t line, std::string key, std::string message) {
    if (problems_.size() >= kMaxProblems) {
      ++problems_left_out_;
      return;
    }
    ConfigProblem wrong;
    if (layer != nullptr && layer->is_file) {
      wrong.file = layer->name;
      wrong.line = line;
    }
    wrong.key = std::move(key);
    wrong.message = std::move(message);
    problems_.push_back(std::move(wrong));
  }

  // --- where the settings stand ---

  void read_document(const Layer& layer) {
    for (const TomlEntry& entry : layer.root->entries) {
      const auto sections = all_sections();
      const auto known =
          std::find_if(sections.begin(), sections.end(),
                       [&](const SectionSpec& section) { return section.name == entry.key; });
      if (known == sections.end()) {
        unknown_section(layer, entry);
      } else if (known->instance.empty()) {
        read_section(layer, known->section, entry.value);
      } else {
        read_instances(layer, known->section, entry.value);
      }
    }
  }

  void unknown_section(const Layer& layer, const TomlEntry& entry) {
    const bool table = entry.value.type == TomlNode::Type::kTable;
    std::string message = table ? "unknown section" : "unknown key";
    if (!table) {
      const auto homes = sections_with(entry.key);
      if (!homes.empty()) {
        problem(&layer, entry.value.line, shown(entry.key),
                message + " at the top of the file; did you mean `" + homes.front() + "`?");
        return;
      }
    }
    std::vector<std::string> names;
    for (const SectionSpec& section : all_sections()) names.emplace_back(section.name);
    const auto near = nearest_names(entry.key, names, 1);
    if (!near.empty()) {
      message += "; did you mean `[" + near[0] + "]`?";
    } else {
      message += "; known sections are " + join_names(names);
    }
    problem(&layer, entry.value.line, shown(entry.key), std::move(message));
  }

  // Dotted names of the settings called `key`.
  static std::vector<std::string> sections_with(std::string_view key) {
    std::vector<std::string> names;
    for (const SectionSpec& section : all_sections()) {
      if (find_setting(section.section, key) == nullptr) continue;
      std::string name(section.name);
      if (!section.instance.empty()) name += ".\"" + std::string(section.instance) + "\"";
      names.push_back(name + "." + std::string(key));
    }
    return names;
  }

  void read_section(const Layer& layer, Section section, const TomlNode& table) {
    const std::string name = section_name(section, {});
    if (table.type != TomlNode::Type::kTable) {
      problem(&layer, table.line, name,
              "expected the section [" + name + "], found " + table.describe());
      return;
    }
    FoundSettings& found = global_[section];
    for (const TomlEntry& entry : table.entries) {
      if (section == Section::kMemory && entry.key == "devices") {
        read_instances(layer, Section::kDevice, entry.value);
      } else {
        read_key(layer, section, {}, entry, found);
      }
    }
  }

  // [model."x"] and [memory.devices."x"]
  void read_instances(const Layer& layer, Section section, const TomlNode& table) {
    const SectionSpec& spec = section_spec(section);
    const std::string form =
        "[" + std::string(spec.name) + ".\"" + std::string(spec.instance) + "\"]";
    if (table.type != TomlNode::Type::kTable) {
      problem(&layer, table.line, std::string(spec.name),
              "expected a section " + form + ", found " + table.describe());
      return;
    }
    for (const TomlEntry& entry : table.entries) {
      const std::string name = std::string(spec.name) + "." + toml_quote(shown(entry.key));
      if (auto wrong = check_name(entry.key)) {
        problem(&layer, entry.value.line, name, std::move(*wrong));
        continue;
      }
      if (entry.value.type != TomlNode::Type::kTable) {
        problem(&layer, entry.value.line, name,
                "expected a section " + form + ", found " + entry.value.describe());
        continue;
      }
      auto& instances = instances_[section];
      if (instances.size() >= kMaxModelSections && !instances.contains(entry.key)) {
        problem(&layer, entry.value.line, name,
                "more than " + std::to_string(kMaxModelSections) + " sections " + form);
        return;
      }
      Instance& instance = instances[entry.key];
      instance.layer = &layer;
      instance.line = entry.value.line;
      for (const TomlEntry& setting : entry.value.entries) {
        read_key(layer, section, entry.key, setting, instance.found);
      }
    }
  }

  void read_key(const Layer& layer, Section section, const std::string& instance,
                const TomlEntry& entry, FoundSettings& found) {
    if (const SettingSpec* spec = find_setting(section, entry.key)) {
      found[spec] = {&entry.value, &layer};
      return;
    }
    const std::string key = section_name(section, instance) + "." + shown(entry.key);
    problem(&layer, entry.value.line, key, unknown_key(section, entry));
  }

  static std::string unknown_key(Section section, const TomlEntry& entry) {
    if (section == Section::kModels && entry.value.type == TomlNode::Type::kTable) {
      return "unknown key; a model's own section is `[model." + toml_quote(shown(entry.key)) +
             "]`, without an s";
    }
    if (section == Section::kDefaults && find_setting(Section::kModel, entry.key) != nullptr) {
      return "has no place in [defaults], because each model has its own; did you mean "
             "`model.\"NAME\"." +
             entry.key + "`?";
    }
    std::vector<std::string> here;
    for (const SettingSpec* spec : settings_of(section)) here.emplace_back(spec->key);
    const auto near = nearest_names(entry.key, here, 1);
    const auto elsewhere = sections_with(entry.key);
    if (!elsewhere.empty()) return "unknown key here; did you mean `" + elsewhere.front() + "`?";
    if (!near.empty()) return "unknown key; did you mean `" + near[0] + "`?";
    std::vector<std::string> all;
    std::map<std::string, std::string> dotted;
    for (const SectionSpec& other : all_sections()) {
      for (const SettingSpec* spec : settings_of(other.section)) all.emplace_back(spec->key);
    }
    if (const auto far = nearest_names(entry.key, all, 1); !far.empty()) {
      return "unknown key; did you mean `" + sections_with(far[0]).front() + "`?";
    }
    return "unknown key; known keys here are " + join_names(here);
  }

  // --- the values ---

  struct Instance {
    const Layer* layer = nullptr;
    std::uint32_t line = 0;
    FoundSettings found;
  };

  const Effective& built_in(const SettingSpec& spec) {
    auto& value = built_in_[&spec];
    if (value.source.empty()) {
      value.source = "default";
      // The table's texts are checked by its unit test.
      const auto document = parse_toml("value = " + std::string(spec.fallback));
      if (document) {
        auto checked = check_value(spec, document->entries.front().value, "/");
        if (checked) value.value = std::move(*checked);
      }
    }
    return value;
  }

  // Checks what a section sets; what it does not set, or sets wrongly, comes from `base`.
  EffectiveSettings effective(Section section, const std::string& instance,
                              const FoundSettings& found, const EffectiveSettings* base) {
    EffectiveSettings values;
    for (const SettingSpec* spec : settings_of(section)) {
      const auto set = found.find(spec);
      if (set != found.end()) {
        const Found& where = set->second;
        auto checked = check_value(*spec, *where.node, where.layer->folder);
        if (checked) {
          values[spec] = {std::move(*checked), where.layer->source(where.node->line), where.layer,
                          where.node->line};
          continue;
        }
        ValueProblem& wrong = checked.error();
        problem(where.layer, wrong.line,
                section_name(section, instance) + "." + std::string(spec->key) + wrong.suffix,
                std::move(wrong.message));
      }
      const auto inherited =
          base == nullptr ? EffectiveSettings::const_iterator{} : base->find(spec);
      values[spec] =
          base != nullptr && inherited != base->end() ? inherited->second : built_in(*spec);
    }
    return values;
  }

  void show(Config& config, Section section, const std::string& instance,
            const EffectiveSettings& values) {
    const std::string prefix = section_name(section, instance) + ".";
    for (const SettingSpec* spec : settings_of(section)) {
      const Effective& value = values.at(spec);
      config.settings.push_back(
          {prefix + std::string(spec->key), format_value(*spec, value.value), value.source});
    }
  }

  // Settings that the user wrote down and that change nothing yet.
  void note_ignored(Config& config, Section section, const std::string& instance,
                    const FoundSettings& found, const EffectiveSettings& values) {
    for (const auto& [spec, where] : found) {
      const Effective& value = values.at(spec);
      if (spec->used || !where.layer->is_file || value.layer == nullptr) continue;
      config.ignored.push_back({section_name(section, instance) + "." + std::string(spec->key),
                                format_value(*spec, value.value), value.source});
    }
  }

  void build(Config& config) {
    for (const SectionSpec& section : all_sections()) {
      switch (section.section) {
        case Section::kDevice:
          build_devices(config);
          break;
        case Section::kDefaults:
          build_defaults(config);
          break;
        case Section::kModel:
          build_models(config);
          break;
        default:
          build_section(config, section.section);
      }
    }
    std::stable_sort(
        config.ignored.begin(), config.ignored.end(),
        [](const Setting& a, const Setting& b) { return line_of(a.source) < line_of(b.source); });
  }

  static std::uint64_t line_of(const std::string& source) {
    return std::strtoull(source.c_str() + source.rfind(':') + 1, nullptr, 10);
  }

  void build_section(Config& config, Section section) {
    const EffectiveSettings values = effective(section, {}, global_[section], nullptr);
    for (const auto& [spec, value] : values) {
      if (spec->store != nullptr) spec->store({&config, nullptr}, value.value);
    }
    show(config, section, {}, values);
    note_ignored(config, section, {}, global_[section], values);
    if (section == Section::kServer) check_server(config, values);
  }

  void build_devices(Config& config) {
    for (const auto& [name, instance] : instances_[Section::kDevice]) {
      const auto values = effective(Section::kDevice, name, instance.found, nullptr);
      core::DeviceBudget& device = config.memory.budgets.devices[name];
      for (const auto& [spec, value] : values) {
        if (spec->store != nullptr) spec->store({&config, nullptr, &device}, value.value);
      }
      show(config, Section::kDevice, name, values);
      note_ignored(config, Section::kDevice, name, instance.found, values);
    }
  }

  void build_defaults(Config& config) {
    const FoundSettings& found = global_[Section::kDefaults];
    defaults_ = effective(Section::kDefaults, {}, found, nullptr);
    ConfiguredModel carrier;
    for (const auto& [spec, value] : defaults_) {
      if (spec->store != nullptr) spec->store({&config, &carrier}, value.value);
    }
    check_combinations(Section::kDefaults, {}, carrier.settings, found, defaults_);
    config.defaults = std::move(carrier.settings);
    show(config, Section::kDefaults, {}, defaults_);
    note_ignored(config, Section::kDefaults, {}, found, defaults_);
  }

  void build_models(Config& config) {
    for (const auto& [name, instance] : instances_[Section::kModel]) {
      const auto values = effective(Section::kModel, name, instance.found, &defaults_);
      ConfiguredModel model;
      model.name = name;
      for (const auto& [spec, value] : values) {
        if (spec->store != nullptr) spec->store({&config, &model}, value.value);
      }
      check_model(model, instance, values);
      check_combinations(Section::kModel, name, model.settings, instance.found, values);
      show_model(config, model, values);
      note_ignored(config, Section::kModel, name, instance.found, values);
      config.models.push_back(std::move(model));
    }
  }

  void show_model(Config& config, const ConfiguredModel& model, const EffectiveSettings& values) {
    const Applies other = model.settings.kind == Kind::kLlama ? Applies::kCommand : Applies::kLlama;
    const std::string prefix = section_name(Section::kModel, model.name) + ".";
    for (const SettingSpec* spec : settings_of(Section::kModel)) {
      if (spec->applies == other) continue;
      const Effective& value = values.at(spec);
      config.settings.push_back(
          {prefix + std::string(spec->key), format_value(*spec, value.value), value.source});
    }
  }

  // --- what must fit together ---

  // Whether the key was set rightly, by a file or by the demo's defaults.
  static const Effective* set_value(const EffectiveSettings& values, const SettingSpec* spec) {
    const auto found = values.find(spec);
    return found == values.end() || found->second.layer == nullptr ? nullptr : &found->second;
  }

  void check_server(const Config& config, const EffectiveSettings& values) {
    const SettingSpec* grpc = find_setting(Section::kServer, "grpc");
    const Effective& listeners = values.at(grpc);
    if (std::ranges::none_of(config.server.grpc, is_unix_address)) {
      problem(listeners.layer, listeners.line, "server.grpc",
              "expected at least one \"unix:PATH\", found " + format_value(*grpc, listeners.value) +
                  "; the server is administered through it");
    }
    server_ = values;

    const SettingSpec* cert_spec = find_setting(Section::kServer, "tls_cert");
    const SettingSpec* key_spec = find_setting(Section::kServer, "tls_key");
    const Effective& cert = values.at(cert_spec);
    const Effective& key = values.at(key_spec);
    const bool has_cert = cert.value != SettingValue(std::string());
    const bool has_key = key.value != SettingValue(std::string());
    if (has_cert && !has_key) {
      problem(cert.layer, cert.line, "server.tls_cert", "needs `tls_key` as well");
    }
    if (has_key && !has_cert) {
      problem(key.layer, key.line, "server.tls_key", "needs `tls_cert` as well");
    }
  }

  void check_model(const ConfiguredModel& model, const Instance& instance,
                   const EffectiveSettings& values) {
    const std::string prefix = section_name(Section::kModel, model.name) + ".";
    const bool is_command = model.settings.kind == Kind::kCommand;
    for (const auto& [spec, where] : instance.found) {
      const std::string key = prefix + std::string(spec->key);
      if (spec->applies == Applies::kCommand && !is_command) {
        problem(where.layer, where.node->line, key,
                "is only for models with `kind = \"command\"`, and this one has the kind "
                "\"llama\"");
      }
      if (spec->applies == Applies::kLlama && is_command) {
        problem(where.layer, where.node->line, key,
                "is only for models with `kind = \"llama\"`, and this one has the kind "
                "\"command\"");
      }
    }
    const SettingSpec* command = find_setting(Section::kModel, "command");
    const auto written = instance.found.find(command);
    const bool wrong = written != instance.found.end() && set_value(values, command) == nullptr;
    if (is_command && !wrong &&
        (model.settings.command.empty() || model.settings.command.front().empty())) {
      const bool here = written != instance.found.end();
      problem(here ? written->second.layer : instance.layer,
              here ? written->second.node->line : instance.line, prefix + "command",
              "expected the program and its arguments, such as [\"vllm\", \"serve\", \"NAME\"], "
              "because the kind is \"command\"");
    }
    if (is_command) check_command(model, instance, values);
  }

  // What could only fail when the command is started.
  void check_command(const ConfiguredModel& model, const Instance& instance,
                     const EffectiveSettings& values) {
    const std::string prefix = section_name(Section::kModel, model.name) + ".";
    // Told at the element of a list where that has a line of its own.
    const auto wrong = [&](std::string_view key, std::optional<std::size_t> at,
                           const std::string& suffix, std::string message) {
      const SettingSpec* const spec = find_setting(Section::kModel, key);
      const auto written = instance.found.find(spec);
      const Effective& value = values.at(spec);
      std::uint32_t line = value.line;
      if (written != instance.found.end() && at && *at < written->second.node->items.size()) {
        line = written->second.node->items[*at].line;
      }
      problem(value.layer, line, prefix + std::string(key) + suffix, std::move(message));
    };
    const auto unknown = [](std::string_view text) -> std::optional<std::string> {
      for (const std::string& name : placeholders_of(text)) {
        if (is_known_placeholder(name)) continue;
        std::string unknown_name = "`{";
        unknown_name.append(name).append("}` is not known; `{port}`, `{socket}` and `{api_key}` ");
        unknown_name.append("are filled in, and `{{").append(name);
        return unknown_name.append("}}` stands for the text itself");
      }
      if (text.find('\0') != std::string_view::npos) return "holds a character of the value 0";
      return std::nullopt;
    };
    for (std::size_t i = 0; i < model.settings.command.size(); ++i) {
      if (auto message = unknown(model.settings.command[i])) {
        wrong("command", i, "[" + std::to_string(i) + "]", *std::move(message));
      }
    }
    for (const auto& [name, text] : model.settings.environment) {
      const std::string suffix = "." + toml_quote(name);
      if (auto message = unknown(text)) {
        wrong("environment", std::nullopt, suffix, *std::move(message));
      }
    }
  }

  // What no worker takes, so that no load has to fail first.
  void check_combinations(Section section, const std::string& instance,
                          const ModelSettings& settings, const FoundSettings& found,
                          const EffectiveSettings& values) {
    if (settings.kind != Kind::kLlama) return;
    // Told where it was written, at the first of the settings that were: what a model has from
    // [defaults] alone is the problem of that section.
    const auto conflict = [&](const std::vector<std::string_view>& keys, std::string expected) {
      for (const std::string_view key : keys) {
        const SettingSpec* const spec = find_setting(section, key);
        if (!found.contains(spec)) continue;
        const Effective& value = values.at(spec);
        problem(value.layer, value.line, section_name(section, instance) + "." + std::string(key),
                std::move(expected));
        return;
      }
    };
    // llama.cpp reads a quantized memory in the fused attention only.
    const std::string& type = settings.kv_type;
    const bool quantized = type != "f32" && type != "f16" && type != "bf16";
    if (quantized && settings.flash_attention == "off") {
      conflict({"kv_type", "flash_attention"},
               "kv_type = \"" + type +
                   "\" does not go with flash_attention = \"off\"; take \"auto\" or \"on\" there, "
                   "or \"f16\" for kv_type");
    }
    const bool drafts = !settings.draft.empty();
    if (drafts && settings.embeddings) {
      conflict({"draft", "embeddings"},
               "draft does not go with embeddings = true, as an embedding has no next token to "
               "guess; leave one of them out");
    }
    const std::uint32_t least = settings.sequences * (drafts ? 1 + kDraftTokens : 1);
    if (settings.batch != 0 && settings.batch < least) {
      conflict({"batch", "sequences", "draft"},
               "batch = " + std::to_string(settings.batch) + " is too small for sequences = " +
                   std::to_string(settings.sequences) + (drafts ? " with a draft" : "") +
                   "; take at least " + std::to_string(least) + ", or \"auto\"");
    }
  }

  // Nobody could use what listens for other machines, unless they have keys or need none.
  void check_exposure(const Config& config) {
    if (!config.auth.keys_file.empty() || config.auth.anonymous) return;
    const auto check = [&](std::string_view key, const std::string& address) {
      if (address.empty() || is_local_address(address)) return;
      const Effective& value = server_.at(find_setting(Section::kServer, key));
      problem(value.layer, value.line, "server." + std::string(key),
              toml_quote(address) +
                  " can be reached from other machines, and nobody there would be served: set "
                  "`auth.keys_file` (`berth keys add` makes keys), or `auth.anonymous = true` to "
                  "serve everybody");
    };
    check("http", config.server.http);
    for (const std::string& address : config.server.grpc) check("grpc", address);
  }

  void check_whole(const Config& config) {
    check_exposure(config);
    check_names(config);
  }

  // Names and aliases are one space.
  void check_names(const Config& config) {
    const SettingSpec* aliases = find_setting(Section::kModel, "aliases");
    std::map<std::string, std::string> owner;  // alias -> model
    for (const ConfiguredModel& model : config.models) {
      const Instance& instance = instances_[Section::kModel][model.name];
      const auto where = instance.found.find(aliases);
      for (std::size_t i = 0; i < model.aliases.size(); ++i) {
        const std::string& alias = model.aliases[i];
        const std::string key =
            section_name(Section::kModel, model.name) + ".aliases[" + std::to_string(i) + "]";
        const std::uint32_t line = i < where->second.node->items.size()
                                       ? where->second.node->items[i].line
                                       : where->second.node->line;
        if (instances_[Section::kModel].contains(alias)) {
          problem(where->second.layer, line, key,
                  toml_quote(alias) + " is the name of " +
                      (alias == model.name ? "this model itself" : "a model"));
        } else if (const auto [first, added] = owner.emplace(alias, model.name); !added) {
          problem(where->second.layer, line, key,
                  toml_quote(alias) + " is already an alias of model " + toml_quote(first->second));
        }
      }
    }
  }

  ConfigResult finish(Config config) {
    ConfigResult result;
    std::stable_sort(
        problems_.begin(), problems_.end(),
        [](const ConfigProblem& a, const ConfigProblem& b) { return a.line < b.line; });
    result.problems = std::move(problems_);
    result.problems_left_out = problems_left_out_;
    if (result.problems.empty()) result.config = std::move(config);
    return result;
  }

  std::vector<Layer> layers_;
  std::map<Section, FoundSettings> global_;
  std::map<Section, std::map<std::string, Instance>> instances_;
  std::map<const SettingSpec*, Effective> built_in_;
  EffectiveSettings server_;
  EffectiveSettings defaults_;
  std::vector<ConfigProblem> problems_;
  std::size_t problems_left_out_ = 0;
};

ConfigResult failed(std::string file, std::uint32_t line, std::string message) {
  ConfigResult result;
  result.problems.push_back({std::move(file), line, {}, std::move(message)});
  return result;
}

std::string absolute(const std::string& path) {
  std::error_code error;
  const auto whole = std::filesystem::absolute(path, error);
  return error ? path : absolute_path(whole.string(), "/");
}

ConfigResult syntax_error(const std::string& file, TomlError error) {
  return failed(file, error.line, std::move(error.message));
}

Layer file_layer(const TomlNode& root, const std::string& path) {
  return {&root, path, std::filesystem::path(absolute(path)).parent_path().string(), true};
}

std::string demo_text(const std::string& dir) {
  const auto quoted = [&](std::string_view prefix, std::string_view name) {
    return toml_quote(std::string(prefix) + dir + "/" + std::string(name));
  };
  return "[server]\ngrpc = [" + quoted("unix:", "run/berth.sock") + "]\n" +
         "http = \"127.0.0.1:11500\"\n" + "state_dir = " + quoted("", "state") + "\n" +
         "run_dir = " + quoted("", "run") + "\n" + "log_dir = " + quoted("", "log") + "\n" +
         "[models]\ndirs = [" + quoted("", "models") + "]\n";
}

}  // namespace

std::string ConfigProblem::to_string() const {
  std::string out;
  if (!file.empty()) {
    out += file;
    if (line > 0) out += ":" + std::to_string(line);
    out += ": ";
  }
  if (!key.empty()) out += key + ": ";
  return out + message;
}

ConfigResult parse_config(std::string_view text, const std::string& path) {
  auto document = parse_toml(text);
  if (!document) return syntax_error(path, std::move(document.error()));
  ConfigResult result = Reader({file_layer(*document, path)}).read();
  if (result.config) result.config->file = absolute(path);
  return result;
}

ConfigResult load_config(const std::string& path) {
  auto text = read_config_file(path);
  if (!text) return failed(path, 0, std::move(text.error()));
  return parse_config(*text, path);
}

ConfigResult demo_config(const std::string& dir) {
  const std::string home = absolute(dir);
  const std::string socket = home + "/run/berth.sock";
  const std::string file = home + "/berth.toml";

  std::string own_text;
  if (exists(file)) {
    auto text = read_config_file(file);
    if (!text) return failed(file, 0, std::move(text.error()));
    own_text = std::move(*text);
  }
  auto own = parse_toml(own_text);
  if (!own) return syntax_error(file, std::move(own.error()));

  const TomlNode* server = own->find("server");
  const bool own_socket = server != nullptr && server->find("grpc") != nullptr;
  if (const auto good = check_socket_path(socket); !good && !own_socket) {
    return failed({}, 0,
                  "The directory's path is too long: " + good.error() + ": " +
                      printable_line(socket, 300) + "; choose a DIR whose path is shorter by " +
                      std::to_string(socket.size() - kMaxSocketPath) + " bytes or more");
  }
  auto demo = parse_toml(demo_text(home));
  if (!demo) {
    return failed({}, 0, "The directory's path cannot be used: " + demo.error().message);
  }
  std::vector<Layer> layers;
  layers.push_back({&*demo, "demo", home, false});
  layers.push_back(file_layer(*own, file));
  ConfigResult result = Reader(std::move(layers)).read();
  if (result.config) result.config->file = own_text.empty() ? std::string() : file;
  return result;
}

std::vector<std::string> open_addresses(const ServerConfig& server) {
  std::vector<std::string> open;
  if (!server.http.empty() && !is_local_address(server.http)) open.push_back(server.http);
  for (const std::string& address : server.grpc) {
    if (!is_local_address(address)) open.push_back(address);
  }
  return open;
}

std::string default_config_path() {
  // Read once, when a program starts.
  const char* set = std::getenv("BERTH_CONFIG");  // NOLINT(concurrency-mt-unsafe)
  return set != nullptr && *set != '\0' ? set : "/etc/berth/berth.toml";
}

ModelSettings effective_settings(const Config& config, std::string_view name) {
  const auto found = std::lower_bound(config.models.begin(), config.models.end(), name,
                                      [](const ConfiguredModel& model, std::string_view wanted) {
                                        return std::string_view(model.name) < wanted;
                                      });
  return found != config.models.end() && found->name == name ? found->settings : config.defaults;
}

}  // namespace berth::catalog
