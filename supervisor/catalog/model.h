#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "supervisor/core/memory/model_shape.h"

namespace berth::catalog {

// The smallest window that a worker takes, in tokens.
inline constexpr std::uint32_t kMinContext = 16;
// The largest that a configuration may ask for.
inline constexpr std::uint32_t kMaxContext = 16'777'216;
inline constexpr std::uint32_t kMaxSequences = 1024;

// What a draft model proposes at once in a worker that is not told otherwise: its --draft-tokens.
inline constexpr std::uint32_t kDraftTokens = 8;

enum class Kind : std::uint8_t { kLlama, kCommand };

// Before the name of one of libllama's own chat templates.
inline constexpr std::string_view kBuiltinTemplate = "builtin:";

// The effective settings of one model: its own, else [defaults], else built in. One function makes
// them for every path that loads a model (T90).
struct ModelSettings {
  Kind kind = Kind::kLlama;
  std::optional<std::uint32_t> context;  // tokens; absent: auto
  std::uint32_t sequences = 4;           // 1 to 1024
  std::uint32_t threads = 0;             // 0: auto
  // Tokens; 0: auto. Else at least one for each sequence, with a draft 1 + kDraftTokens.
  std::uint32_t batch = 0;
  std::string kv_type = "f16";             // a quantized one never with flash_attention off
  std::string flash_attention = "auto";    // auto | on | off
  std::string chat_template;               // path or builtin:NAME; empty: the model's own
  std::optional<std::int32_t> gpu_layers;  // absent: all
  std::vector<std::string> devices;        // ggml's names, or domains' ids; empty: the processor
  bool embeddings = false;
  std::string sandbox = "on";         // on | off (L26)
  std::string draft;                  // path; empty: none
  std::vector<std::string> adapters;  // paths
  Duration ttl{};                     // 0: never unloaded for idleness
  bool pin = false;
  Duration load_timeout{};
  std::optional<Duration> load_stall;   // absent: auto
  std::optional<Duration> wedge_after;  // absent: auto
  std::vector<std::string> fatal_exceptions;
  // kind = command
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;
  std::string directory;
  std::string probe;
  std::map<std::string, std::uint64_t> memory;  // bytes by domain, declared; empty: not known

  bool operator==(const ModelSettings&) const = default;
};

// What of a model's files costs memory, for core::model_cost(). A value.
struct ModelParts {
  core::ModelShape model;
  std::optional<core::ModelShape> draft;
  std::vector<core::ModelShape> adapters;
};

// What the catalogue knows of a model. A value: copies may be kept.
struct Model {
  std::string name;
  std::vector<std::string> aliases;
  std::string path;                 // first shard; empty for commands
  std::vector<std::string> shards;  // all files
  ModelSettings settings;

  // From the file's header.
  std::string architecture;
  std::string title;
  std::uint64_t parameters = 0;
  std::uint64_t file_bytes = 0;
  std::string quantization;
  std::uint32_t declared_context = 0;  // tokens; 0: not said
  bool has_chat_template = false;
  bool can_chat = false;
  bool can_embed = false;
  WallTime modified{};
  std::uint64_t header_hash = 0;  // of the first shard (L19); 0: the header could not be read
  // Another one when any of the files is another one: inode, size, time. 0: not known. For this
  // process only.
  std::uint64_t file_stamp = 0;
  // Of the files that its settings name (template, draft, adapters): another one when the size or
  // the time of one is another one. The same in every run of the program.
  std::uint64_t companions_stamp = 0;

  // Null: what it costs is not known, as that of a command; or its header does not tell, and
  // `parts_problem` says why. Shared by all copies.
  std::shared_ptr<const ModelParts> parts;
  std::string parts_problem;
  // Of the files that both are made of; for this process only.
  std::uint64_t parts_stamp = 0;

  // Why it cannot be used, one sentence; empty: it can be.
  std::string problem;

  // Tokens that it is served with: the configured window, else min(declared, auto_context_max),
  // which the plan of a load may make smaller (M6).
  std::uint32_t served_context = 0;
};

}  // namespace berth::catalog
