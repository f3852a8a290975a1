#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace berth::cli {

// What the command line says, one struct for each verb. Plain values; CLI11 stays in app.cc.

struct CommonOptions {
  std::string endpoint{};      // empty: not given
  std::string api_key_file{};  // empty: BERTH_API_KEY
  std::string tls_ca{};        // empty: BERTH_TLS_CA
  bool json = false;
};

struct SamplingOptions {
  std::optional<float> temperature;    // 0 to 100
  std::optional<std::uint32_t> top_k;  // 0: off
  std::optional<float> top_p;          // above 0, to 1
  std::optional<std::uint32_t> seed;
  std::optional<std::uint32_t> max_tokens;  // at least 1
  std::vector<std::string> stop;            // at most 16
};

struct CompleteOptions {
  std::string model;
  std::vector<std::string> prompt;  // words; "-" is the standard input
  SamplingOptions sampling;
  bool verbose = false;
};

struct ChatOptions {
  std::string model;
  std::vector<std::string> prompt;  // empty: interactive, or the standard input
  std::string system;
  SamplingOptions sampling;
  bool verbose = false;
};

struct LoadOptions {
  std::string model;
  bool no_wait = false;
  bool verbose = false;
};

struct FailuresOptions {
  std::string model;  // empty: of all models
  bool all = false;
  std::optional<std::uint32_t> limit;  // 1 to 1000
};

struct WhyOptions {
  std::string model;
};

struct UnloadOptions {
  std::string model;
  bool force = false;
};

struct PlanOptions {
  std::string model;
  std::optional<std::uint32_t> context;    // tokens, 16 to 16,777,216
  std::optional<std::uint32_t> sequences;  // 1 to 1024
};

struct PinOptions {
  std::string model;
};

struct LogsOptions {
  std::string model;
  bool follow = false;
  std::optional<std::uint32_t> lines;  // 0: all
};

struct EventsOptions {
  bool follow = false;
  std::string since;  // empty: not given
  std::string prefix;
};

struct ClassifyLogOptions {
  std::string file;                // empty or "-": the standard input
  std::vector<std::string> fatal;  // names of exceptions; empty: the default ones
};

struct ConfigCheckOptions {
  std::string file;  // empty: the configured one
};

struct ConfigShowOptions {
  std::string file;  // empty: the daemon's
  bool offline = false;
};

struct KeysOptions {
  std::string name;
  std::string role = "client";  // or admin
  std::string group;            // empty: the key is a tenant of its own
  std::string file;             // empty: the configured one
};

}  // namespace berth::cli
