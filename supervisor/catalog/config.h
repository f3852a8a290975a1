#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "supervisor/catalog/model.h"
#include "supervisor/core/memory/domain_table.h"

namespace berth::catalog {

// [server]. Paths are absolute after reading.
struct ServerConfig {
  std::vector<std::string> grpc;  // "unix:/path", at least one, and "HOST:PORT"
  std::string http;               // "HOST:PORT"; empty: off
  std::string state_dir;
  std::string run_dir;
  std::string bank_dir;  // "auto" or a path
  std::string log_dir;
  std::uint32_t log_keep = 5;
  bool log_content = false;
  std::chrono::milliseconds drain_timeout{};
  std::chrono::milliseconds flush_budget{};
  std::chrono::milliseconds queue_timeout{};
  std::chrono::milliseconds max_wait{};
  std::chrono::milliseconds grace{};
  std::chrono::milliseconds retry_grace{};
  std::optional<Duration> swap_drain;      // absent: what runs is let run
  std::uint64_t max_body = 0;              // bytes
  std::vector<std::string> allowed_hosts;  // lower case, without a port; IPv6 in brackets
  std::vector<std::string> cors_origins;   // as browsers send them: "https://example.org:8443"
  std::string tls_cert;                    // PEM file; empty: no TLS, and tls_key is empty, too
  std::string tls_key;

  bool operator==(const ServerConfig&) const = default;
};

// [auth].
struct AuthConfig {
  std::string keys_file;                      // absolute; empty: there are no keys
  std::uint32_t key_requests_per_minute = 0;  // 0: no limit
  std::uint32_t key_concurrency = 0;          // 0: no limit
  bool anonymous = false;                     // network clients without a key are served

  bool operator==(const AuthConfig&) const = default;
};

// [memory] and [memory.devices."ID"].
struct MemoryConfig {
  core::BudgetConfig budgets;
  double auto_share = 0.5;                 // of the budget (M6), in (0, 1]
  std::uint32_t auto_context_max = 32768;  // tokens

  bool operator==(const MemoryConfig&) const = default;
};

// One setting with its effective value and where it came from.
struct Setting {
  std::string key;     // dotted: server.drain_timeout, model."demo".context
  std::string value;   // as it would be written in the file
  std::string source;  // default | demo | FILE:LINE

  bool operator==(const Setting&) const = default;
};

// A configured model: [model."name"], or one that a directory scan will find.
struct ConfiguredModel {
  std::string name;
  std::string path;  // absolute; empty: must be found in a directory, or kind = command
  std::vector<std::string> aliases;
  ModelSettings settings;

  bool operator==(const ConfiguredModel&) const = default;
};

// The whole configuration, valid and complete. A value.
struct Config {
  std::string file;  // absolute; empty: none was read
  ServerConfig server;
  AuthConfig auth;
  std::vector<std::string> model_dirs;  // absolute
  std::vector<ConfiguredModel> models;  // by name
  ModelSettings defaults;               // for models without a section
  MemoryConfig memory;
  std::vector<Setting> settings;  // every setting, in the order of the documentation
  std::vector<Setting> ignored;   // set by the user, valid, but not used by this version
};

// One thing that is wrong with a config file.
struct ConfigProblem {
  std::string file;        // as it was named; empty: not of a file
  std::uint32_t line = 0;  // 0: of the file as a whole
  std::string key;         // dotted; empty: not of a setting
  std::string message;     // what was expected, and the nearest known key

  // FILE:LINE: key: message
  [[nodiscard]] std::string to_string() const;
};

// What reading gives: a configuration, or all that is wrong with it.
struct ConfigResult {
  std::optional<Config> config;
  std::vector<ConfigProblem> problems;  // by line, at most 50
  std::size_t problems_left_out = 0;    // beyond those
};

// Reads and checks a file. Blocks on the file system; touches nothing else. Relative paths are
// relative to the file's folder.
ConfigResult load_config(const std::string& path);

// The same for text; `path` names it in messages and anchors relative paths.
ConfigResult parse_config(std::string_view text, const std::string& path);

// The configuration of `berthd --demo DIR`: everything inside `dir` (absolute), loopback only, no
// root. Where DIR/berth.toml exists it is read on top of these defaults.
ConfigResult demo_config(const std::string& dir);

// The addresses of http and grpc that other machines reach.
std::vector<std::string> open_addresses(const ServerConfig& server);

// "/etc/berth/berth.toml", or BERTH_CONFIG.
std::string default_config_path();

// The settings that a model is loaded with: its own, else [defaults], else the built-in ones. Every
// path that loads a model gets them from here (scan() puts them into Model::settings).
ModelSettings effective_settings(const Config& config, std::string_view name);

}  // namespace berth::catalog
