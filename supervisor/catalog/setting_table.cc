#include "supervisor/catalog/setting_table.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

#include "common/chat_template_names.h"

namespace berth::catalog {
namespace {

using std::chrono::milliseconds;

constexpr double kSecond = 1'000;
constexpr double kMinute = 60 * kSecond;
constexpr double kHour = 60 * kMinute;
constexpr double kDay = 24 * kHour;
constexpr double kKiB = 1024;
constexpr double kMiB = 1024 * kKiB;
constexpr double kGiB = 1024 * kMiB;
constexpr double kPiB = 1024 * 1024 * kGiB;
// What a worker takes.
constexpr double kMinBatch = 64;
constexpr double kMaxBatch = 16'384;

// Puts a checked value into a member. A word means "absent" or 0 there, but for texts, which keep
// it. A value of another type than the member's would be a defect of the table below; the unit test
// sets every row.
template <typename T>
void assign(T& member, const SettingValue& value) {
  if (const T* same = std::get_if<T>(&value)) member = *same;
}

void assign(std::string& member, const SettingValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) member = *text;
  if (const Word* word = std::get_if<Word>(&value)) member = word->text;
}

void assign(std::uint32_t& member, const SettingValue& value) {
  if (const auto* count = std::get_if<std::uint64_t>(&value)) {
    member = static_cast<std::uint32_t>(*count);
  }
  if (std::holds_alternative<Word>(value)) member = 0;
}

// Of `domain`: "auto" or "own".
void assign(bool& member, const SettingValue& value) {
  if (const auto* set = std::get_if<bool>(&value)) member = *set;
  if (const auto* text = std::get_if<std::string>(&value)) member = *text == "own";
}

void assign(Kind& member, const SettingValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text != nullptr) member = *text == "command" ? Kind::kCommand : Kind::kLlama;
}

void assign(Duration& member, const SettingValue& value) {
  if (const auto* duration = std::get_if<milliseconds>(&value)) member = *duration;
}

void assign(std::map<std::string, std::uint64_t>& member, const SettingValue& value) {
  if (const auto* sizes = std::get_if<SizeMap>(&value)) member = *sizes;
}

template <typename T>
void assign(std::optional<T>& member, const SettingValue& value) {
  member.reset();
  if constexpr (std::is_integral_v<T>) {
    if (const auto* count = std::get_if<std::uint64_t>(&value)) member = static_cast<T>(*count);
  } else {
    if (const auto* duration = std::get_if<milliseconds>(&value)) member = *duration;
  }
}

template <typename Member>
struct ClassOf;
template <typename C, typename T>
struct ClassOf<T C::*> {
  using Type = C;
};

// A store function for a member of ServerConfig, AuthConfig, MemoryConfig, its budgets or one of
// them, Config, ConfiguredModel or ModelSettings.
template <auto kMember>
void into(const SettingTarget& target, const SettingValue& value) {
  using Owner = typename ClassOf<decltype(kMember)>::Type;
  if constexpr (std::is_same_v<Owner, ServerConfig>) {
    assign(target.config->server.*kMember, value);
  } else if constexpr (std::is_same_v<Owner, AuthConfig>) {
    assign(target.config->auth.*kMember, value);
  } else if constexpr (std::is_same_v<Owner, MemoryConfig>) {
    assign(target.config->memory.*kMember, value);
  } else if constexpr (std::is_same_v<Owner, core::BudgetConfig>) {
    assign(target.config->memory.budgets.*kMember, value);
  } else if constexpr (std::is_same_v<Owner, core::DeviceBudget>) {
    assign(target.device->*kMember, value);
  } else if constexpr (std::is_same_v<Owner, Config>) {
    assign(target.config->*kMember, value);
  } else if constexpr (std::is_same_v<Owner, ConfiguredModel>) {
    assign(target.model->*kMember, value);
  } else {
    assign(target.model->settings.*kMember, value);
  }
}

constexpr std::array kSections = {
    SectionSpec{Section::kServer, "server", "",
                "Where the server listens, where it keeps its files, and how long it waits."},
    SectionSpec{Section::kAuth, "auth", "",
                "Who may use the server over the network. With no key file, only loopback and the "
                "Unix socket are served."},
    SectionSpec{Section::kMemory, "memory", "", "How much memory models may use."},
    SectionSpec{Section::kDevice, "memory.devices", "ID",
                "One device, named by its stable id (`berth doctor` lists them)."},
    SectionSpec{Section::kSessions, "sessions", "", "Conversations that are kept across swaps."},
    SectionSpec{Section::kIdle, "idle", "",
                "What the server does for itself while nobody needs the machine."},
    SectionSpec{Section::kDefaults, "defaults", "",
                "Settings for all models; a model's own section overrides them. Takes every key of "
                "`[model.\"NAME\"]` but `path` and `aliases`."},
    SectionSpec{Section::kModels, "models", "", "Where models are found."},
    SectionSpec{Section::kModel, "model", "NAME",
                "One model: overrides the settings of a model that was found in `models.dirs` "
                "under this name, or adds one from elsewhere."},
};

using enum SettingType;

constexpr std::array kSettings = {
    // [server]
    SettingSpec{
        .key = "grpc",
        .type = kListenList,
        .fallback = R"(["unix:/run/berth/berth.sock"])",
        .used = true,
        .store = into<&ServerConfig::grpc>,
        .doc = "Where gRPC is served: `unix:PATH` or `HOST:PORT`, at least one. An address that "
               "other machines reach needs `auth.keys_file`, or `auth.anonymous = true`."},
    SettingSpec{.key = "http",
                .type = kHostPort,
                .fallback = R"("127.0.0.1:11500")",
                .may_be_empty = true,
                .used = true,
                .store = into<&ServerConfig::http>,
                .doc = "Where HTTP is served; port 0 takes a free one; empty switches HTTP off. An "
                       "address that other machines reach needs `auth.keys_file`, or "
                       "`auth.anonymous = true`."},
    SettingSpec{.key = "state_dir",
                .type = kPath,
                .fallback = R"("/var/lib/berth")",
                .used = true,
                .store = into<&ServerConfig::state_dir>,
                .doc = "Database and checkpoints. One server at a time may use it."},
    SettingSpec{.key = "run_dir",
                .type = kPath,
                .fallback = R"("/run/berth")",
                .used = true,
                .store = into<&ServerConfig::run_dir>,
                .doc = "Sockets of the workers."},
    SettingSpec{.key = "bank_dir",
                .type = kPath,
                .fallback = R"("auto")",
                .word = "auto",
                .store = into<&ServerConfig::bank_dir>,
                .doc = "Memory tier of the sessions: a directory on a tmpfs."},
    SettingSpec{.key = "log_dir",
                .type = kPath,
                .fallback = R"("/var/log/berth")",
                .used = true,
                .store = into<&ServerConfig::log_dir>,
                .doc = "One log file per model."},
    SettingSpec{.key = "log_keep",
                .type = kCount,
                .fallback = "5",
                .low = 1,
                .high = 1000,
                .used = true,
                .store = into<&ServerConfig::log_keep>,
                .doc = "How many log files of a model are kept."},
    SettingSpec{.key = "log_content",
                .type = kSwitch,
                .fallback = "false",
                .store = into<&ServerConfig::log_content>,
                .doc = "Whether texts of prompts and answers may appear in the log."},
    SettingSpec{.key = "drain_timeout",
                .type = kDuration,
                .fallback = R"("30s")",
                .low = 0,
                .high = kDay,
                .used = true,
                .store = into<&ServerConfig::drain_timeout>,
                .doc = "How long running answers may go on after the server was told to stop."},
    SettingSpec{.key = "flush_budget",
                .type = kDuration,
                .fallback = R"("30s")",
                .low = 0,
                .high = kHour,
                .store = into<&ServerConfig::flush_budget>,
                .doc = "How long sessions are written to disk at a stop."},
    SettingSpec{.key = "queue_timeout",
                .type = kDuration,
                .fallback = R"("10m")",
                .low = 1,
                .high = kDay,
                .used = true,
                .store = into<&ServerConfig::queue_timeout>,
                .doc = "How long a request waits for its model at most; a client's own deadline "
                       "wins if it is shorter."},
    SettingSpec{.key = "max_wait",
                .type = kDuration,
                .fallback = R"("10s")",
                .low = 1,
                .high = kHour,
                .used = true,
                .store = into<&ServerConfig::max_wait>,
                .doc = "How long requests for a resident model may go first while another model's "
                       "request waits for its room."},
    SettingSpec{.key = "swap_drain",
                .type = kDuration,
                .fallback = R"("off")",
                .low = 1,
                .high = kDay,
                .word = "off",
                .used = true,
                .store = into<&ServerConfig::swap_drain>,
                .doc = "After how long a running answer is ended when another model waits for its "
                       "room."},
    SettingSpec{.key = "grace",
                .type = kDuration,
                .fallback = R"("10s")",
                .low = 0,
                .high = kHour,
                .used = true,
                .store = into<&ServerConfig::grace>,
                .doc = "How long a model must have been idle before it may be unloaded for "
                       "another."},
    SettingSpec{.key = "retry_grace",
                .type = kDuration,
                .fallback = R"("10s")",
                .low = 0,
                .high = kHour,
                .used = true,
                .store = into<&ServerConfig::retry_grace>,
                .doc = "How long a load goes on, and what its waiters had waited counts on, after "
                       "the last of them has hung up."},
    SettingSpec{.key = "max_body",
                .type = kSize,
                .fallback = R"("64MiB")",
                .low = kKiB,
                .high = kGiB,
                .used = true,
                .store = into<&ServerConfig::max_body>,
                .doc = "Largest request."},
    SettingSpec{.key = "allowed_hosts",
                .type = kHostList,
                .fallback = "[]",
                .used = true,
                .store = into<&ServerConfig::allowed_hosts>,
                .doc = "Host names that HTTP requests may name, besides loopback and the address "
                       "that is listened on; without a port."},
    SettingSpec{.key = "cors_origins",
                .type = kOriginList,
                .fallback = "[]",
                .used = true,
                .store = into<&ServerConfig::cors_origins>,
                .doc = "Origins whose pages may call the server, as in `https://example.org`. "
                       "There is no `*`: a page from anywhere could use the server in the name of "
                       "whoever looks at it."},
    SettingSpec{.key = "tls_cert",
                .type = kPath,
                .fallback = R"("")",
                .may_be_empty = true,
                .used = true,
                .store = into<&ServerConfig::tls_cert>,
                .doc = "Certificate chain (PEM) for every network address of `http` and `grpc`. "
                       "Needs `tls_key`."},
    SettingSpec{.key = "tls_key",
                .type = kPath,
                .fallback = R"("")",
                .may_be_empty = true,
                .used = true,
                .store = into<&ServerConfig::tls_key>,
                .doc = "Private key (PEM) of `tls_cert`, without a password."},

    // [auth]
    SettingSpec{.section = Section::kAuth,
                .key = "keys_file",
                .type = kPath,
                .fallback = R"("")",
                .may_be_empty = true,
                .used = true,
                .store = into<&AuthConfig::keys_file>,
                .doc = "File of the keys: `name:role:tenant_group:hash` per line; roles are "
                       "`client` and `admin`. `berth keys` writes it; changes count at once."},
    SettingSpec{.section = Section::kAuth,
                .key = "key_requests_per_minute",
                .type = kCount,
                .fallback = "0",
                .high = 1e6,
                .used = true,
                .store = into<&AuthConfig::key_requests_per_minute>,
                .doc = "Requests that one key may make in a minute; 0 is no limit."},
    SettingSpec{.section = Section::kAuth,
                .key = "key_concurrency",
                .type = kCount,
                .fallback = "0",
                .high = 1e5,
                .used = true,
                .store = into<&AuthConfig::key_concurrency>,
                .doc = "Requests that one key may have waiting or running; 0 is no limit."},
    SettingSpec{.section = Section::kAuth,
                .key = "anonymous",
                .type = kSwitch,
                .fallback = "false",
                .used = true,
                .store = into<&AuthConfig::anonymous>,
                .doc = "Whether network clients without a key are served, as clients that are "
                       "told nothing of the server's other work."},

    // [memory]
    SettingSpec{.section = Section::kMemory,
                .key = "host_budget",
                .type = kSize,
                .fallback = R"("auto")",
                .low = kMiB,
                .high = kPiB,
                .word = "auto",
                .used = true,
                .store = into<&core::BudgetConfig::host>,
                .doc = "Main memory that models may use; `auto` leaves 40 % to the machine."},
    SettingSpec{.section = Section::kMemory,
                .key = "device_budget",
                .type = kSize,
                .fallback = R"("auto")",
                .low = kMiB,
                .high = kPiB,
                .word = "auto",
                .used = true,
                .store = into<&core::BudgetConfig::device>,
                .doc = "Memory of each device that models may use; `auto` leaves 5 %, at least "
                       "512 MiB."},
    SettingSpec{.section = Section::kMemory,
                .key = "bank_max",
                .type = kSize,
                .fallback = R"("auto")",
                .high = kPiB,
                .word = "auto",
                .doc = "Main memory that kept sessions may use."},
    SettingSpec{.section = Section::kMemory,
                .key = "auto_share",
                .type = kFraction,
                .fallback = "0.5",
                .low = 0.01,
                .high = 1,
                .used = true,
                .store = into<&MemoryConfig::auto_share>,
                .doc = "Part of the budget that a model with `context = \"auto\"` may take while "
                       "another one is there or waits."},
    SettingSpec{.section = Section::kMemory,
                .key = "auto_context_max",
                .type = kCount,
                .fallback = "32768",
                .low = kMinContext,
                .high = kMaxContext,
                .used = true,
                .store = into<&MemoryConfig::auto_context_max>,
                .doc = "Largest window, in tokens, of a model with `context = \"auto\"`."},
    SettingSpec{.section = Section::kDevice,
                .key = "budget",
                .type = kSize,
                .fallback = R"("auto")",
                .low = kMiB,
                .high = kPiB,
                .word = "auto",
                .used = true,
                .store = into<&core::DeviceBudget::budget>,
                .doc = "Memory of this device that models may use."},
    SettingSpec{.section = Section::kDevice,
                .key = "domain",
                .type = kChoice,
                .fallback = R"("auto")",
                .choices = "auto own",
                .used = true,
                .store = into<&core::DeviceBudget::own>,
                .doc = "`own` gives a device that shares the main memory a budget of its own, "
                       "taken out of the main memory's."},

    // [sessions]
    SettingSpec{.section = Section::kSessions,
                .key = "restore_wait",
                .type = kDuration,
                .fallback = R"("8s")",
                .high = 10 * kMinute,
                .doc = "How long a request waits for its session's memory, at most half of what "
                       "computing it anew would take."},
    SettingSpec{.section = Section::kSessions,
                .key = "disk_max",
                .type = kSize,
                .fallback = R"("auto")",
                .high = kPiB,
                .word = "auto",
                .doc = "Disk space that sessions may use."},
    SettingSpec{.section = Section::kSessions,
                .key = "disk_free_min",
                .type = kSize,
                .fallback = R"("auto")",
                .high = kPiB,
                .word = "auto",
                .doc = "Disk space that sessions leave free."},
    SettingSpec{.section = Section::kSessions,
                .key = "disk_write_per_hour",
                .type = kSize,
                .fallback = R"("64GiB")",
                .high = kPiB,
                .doc = "How much may be written to disk in an hour."},
    SettingSpec{.section = Section::kSessions,
                .key = "encryption_credential",
                .type = kText,
                .fallback = R"("")",
                .may_be_empty = true,
                .doc = "Name of the systemd credential that sessions on disk are encrypted with; "
                       "empty: they are not."},

    // [idle]
    SettingSpec{.section = Section::kIdle,
                .key = "after",
                .type = kDuration,
                .fallback = R"("5m")",
                .low = 1,
                .high = 7 * kDay,
                .doc = "How long no request must have come before the machine counts as idle."},
    SettingSpec{.section = Section::kIdle,
                .key = "context_probe",
                .type = kSwitch,
                .fallback = "true",
                .doc = "Whether the largest usable window of each model is measured."},
    SettingSpec{.section = Section::kIdle,
                .key = "self_test",
                .type = kSwitch,
                .fallback = "true",
                .doc = "Whether models are tested."},
    SettingSpec{.section = Section::kIdle,
                .key = "calibration",
                .type = kSwitch,
                .fallback = "true",
                .doc = "Whether calibrations that became invalid are queued again."},
    SettingSpec{.section = Section::kIdle,
                .key = "prefill_target",
                .type = kDuration,
                .fallback = R"("10m")",
                .low = kSecond,
                .high = kDay,
                .doc = "How long reading a prompt may take in a window that the probe accepts."},

    // [models]
    SettingSpec{.section = Section::kModels,
                .key = "dirs",
                .type = kPathList,
                .fallback = R"(["/srv/models"])",
                .used = true,
                .store = into<&Config::model_dirs>,
                .doc = "Directories of models: every `*.gguf` file in them or in a directory "
                       "directly below them is a model, named by its file's stem. Of a split model "
                       "the first file counts. Of two files of one name the first directory's "
                       "wins."},

    // [model."NAME"] and [defaults]
    SettingSpec{.section = Section::kModel,
                .key = "kind",
                .type = kChoice,
                .fallback = R"("llama")",
                .choices = "llama command",
                .used = true,
                .store = into<&ModelSettings::kind>,
                .doc = "`llama`: a GGUF file in a worker of our own. `command`: any program with "
                       "an OpenAI-compatible HTTP endpoint."},
    SettingSpec{.section = Section::kModel,
                .key = "path",
                .type = kPath,
                .fallback = R"("")",
                .may_be_empty = true,
                .used = true,
                .applies = Applies::kLlama,
                .only_own = true,
                .store = into<&ConfiguredModel::path>,
                .doc = "The GGUF file, of a split model its first one. Not needed for a model "
                       "that is found in `models.dirs`. A file of those directories that is named "
                       "here has this section's name and `aliases`, and its own name no more."},
    SettingSpec{.section = Section::kModel,
                .key = "aliases",
                .type = kNameList,
                .fallback = "[]",
                .used = true,
                .only_own = true,
                .store = into<&ConfiguredModel::aliases>,
                .doc = "Further names that requests may use."},
    SettingSpec{.section = Section::kModel,
                .key = "context",
                .type = kCount,
                .fallback = R"("auto")",
                .low = kMinContext,
                .high = kMaxContext,
                .word = "auto",
                .used = true,
                .store = into<&ModelSettings::context>,
                .doc = "The window in tokens. `auto`: what the model declares (4096 where it does "
                       "not say), at most `memory.auto_context_max`. More than the model declares "
                       "is taken as it is: answers may get worse beyond that."},
    SettingSpec{.section = Section::kModel,
                .key = "sequences",
                .type = kCount,
                .fallback = "4",
                .low = 1,
                .high = kMaxSequences,
                .used = true,
                .store = into<&ModelSettings::sequences>,
                .doc = "How many requests are answered at the same time."},
    SettingSpec{.section = Section::kModel,
                .key = "threads",
                .type = kCount,
                .fallback = R"("auto")",
                .low = 1,
                .high = 1024,
                .word = "auto",
                .used = true,
                .store = into<&ModelSettings::threads>,
                .doc = "Threads that compute."},
    SettingSpec{.section = Section::kModel,
                .key = "batch",
                .type = kCount,
                .fallback = R"("auto")",
                .low = kMinBatch,
                .high = kMaxBatch,
                .word = "auto",
                .used = true,
                .store = into<&ModelSettings::batch>,
                .doc = "Tokens of a prompt that are read in one step."},
    SettingSpec{.section = Section::kModel,
                .key = "kv_type",
                .type = kChoice,
                .fallback = R"("f16")",
                .choices = "f32 f16 bf16 q8_0 q5_1 q5_0 q4_1 q4_0 iq4_nl",
                .used = true,
                .store = into<&ModelSettings::kv_type>,
                .doc = "Number format of the attention's memory; smaller ones need less of it. All "
                       "but `f32`, `f16` and `bf16` need `flash_attention`."},
    SettingSpec{.section = Section::kModel,
                .key = "flash_attention",
                .type = kChoice,
                .fallback = R"("auto")",
                .choices = "auto on off",
                .used = true,
                .store = into<&ModelSettings::flash_attention>,
                .doc = "Whether the fused attention is used."},
    SettingSpec{.section = Section::kModel,
                .key = "chat_template",
                .type = kPath,
                .fallback = R"("")",
                .prefix = kBuiltinTemplate,
                .prefix_names = chat_template_names,
                .may_be_empty = true,
                .used = true,
                .store = into<&ModelSettings::chat_template>,
                .doc = "File with a chat template that replaces the model's own, or one that "
                       "libllama knows by its name, e.g. `builtin:chatml`."},
    SettingSpec{.section = Section::kModel,
                .key = "gpu_layers",
                .type = kCount,
                .fallback = R"("auto")",
                .high = 1e5,
                .word = "auto",
                .used = true,
                .store = into<&ModelSettings::gpu_layers>,
                .doc = "Layers that go to `devices`, with the output as the last; `auto` is all."},
    SettingSpec{.section = Section::kModel,
                .key = "devices",
                .type = kTextList,
                .fallback = "[]",
                .used = true,
                .store = into<&ModelSettings::devices>,
                .doc = "Devices that may hold the model's layers, by the names that "
                       "`berth-worker --devices` lists (`CUDA0`) or by ids that stay the same "
                       "(`GPU-8f6a…`, see memory.md); empty: the processor. A model that does "
                       "not fit one of them is split over all. A model whose device is not there "
                       "is not loaded."},
    SettingSpec{.section = Section::kModel,
                .key = "embeddings",
                .type = kSwitch,
                .fallback = "false",
                .used = true,
                .store = into<&ModelSettings::embeddings>,
                .doc = "Whether a model without a pooling type gives embeddings, instead of "
                       "texts."},
    SettingSpec{.section = Section::kModel,
                .key = "sandbox",
                .type = kChoice,
                .fallback = R"("on")",
                .choices = "on off",
                .used = true,
                .store = into<&ModelSettings::sandbox>,
                .doc = "Whether the worker shuts itself in before it opens the model's file. `off` "
                       "is for a device whose driver does not work so, and for files that you "
                       "trust as you trust programs: see security.md."},
    SettingSpec{.section = Section::kModel,
                .key = "draft",
                .type = kPath,
                .fallback = R"("")",
                .may_be_empty = true,
                .used = true,
                .store = into<&ModelSettings::draft>,
                .doc = "GGUF file of a small model that guesses ahead; it must have the model's "
                       "vocabulary."},
    SettingSpec{.section = Section::kModel,
                .key = "adapters",
                .type = kPathList,
                .fallback = "[]",
                .used = true,
                .store = into<&ModelSettings::adapters>,
                .doc = "GGUF files of adapters (LoRA)."},
    SettingSpec{.section = Section::kModel,
                .key = "keepalive",
                .type = kSwitch,
                .fallback = "false",
                .doc = "Whether an idle device is kept awake, so that the first token comes "
                       "sooner."},
    SettingSpec{.section = Section::kModel,
                .key = "pin",
                .type = kSwitch,
                .fallback = "false",
                .used = true,
                .store = into<&ModelSettings::pin>,
                .doc = "Whether the model, once loaded, stays: neither `ttl` nor another model's "
                       "need unloads it. A reload that brings or takes it counts at once."},
    SettingSpec{.section = Section::kModel,
                .key = "ttl",
                .type = kDuration,
                .fallback = R"("30m")",
                .high = 365 * kDay,
                .used = true,
                .store = into<&ModelSettings::ttl>,
                .doc = "After how long without a request the model is unloaded; 0 is never."},
    SettingSpec{.section = Section::kModel,
                .key = "load_timeout",
                .type = kDuration,
                .fallback = R"("30m")",
                .low = 1,
                .high = 7 * kDay,
                .used = true,
                .store = into<&ModelSettings::load_timeout>,
                .doc = "How long loading may take at most."},
    SettingSpec{.section = Section::kModel,
                .key = "load_stall",
                .type = kDuration,
                .fallback = R"("auto")",
                .low = 1,
                .high = kDay,
                .word = "auto",
                .used = true,
                .store = into<&ModelSettings::load_stall>,
                .doc = "After how long without any progress a load fails; `auto` is 60s, and 180s "
                       "for commands."},
    SettingSpec{.section = Section::kModel,
                .key = "wedge_after",
                .type = kDuration,
                .fallback = R"("auto")",
                .low = 1,
                .high = kDay,
                .word = "auto",
                .used = true,
                .store = into<&ModelSettings::wedge_after>,
                .doc = "After how long without any progress a worker that has work is stopped; "
                       "`auto` is 120s, and more where a step takes long; for commands it is "
                       "never, and a duration is not used before requests are passed on to "
                       "them."},
    SettingSpec{.section = Section::kModel,
                .key = "fatal_exceptions",
                .type = kTextList,
                .fallback = R"(["ValueError", "ModuleNotFoundError", "ImportError"])",
                .used = true,
                .store = into<&ModelSettings::fatal_exceptions>,
                .doc = "Python exceptions in a log that mean that a load cannot succeed."},
    SettingSpec{.section = Section::kModel,
                .key = "command",
                .type = kTextList,
                .fallback = "[]",
                .used = true,
                .applies = Applies::kCommand,
                .store = into<&ModelSettings::command>,
                .doc =
                    "Program and arguments, without a shell. `{port}` (a free one of 127.0.0.1) or "
                    "`{socket}` (path of a Unix socket) says where it has to listen, "
                    "`{api_key}` is a key that is made for each run; `{{port}}` stands for the "
                    "text `{port}`. A program without a slash is looked for in the `PATH` of "
                    "its environment."},
    SettingSpec{
        .section = Section::kModel,
        .key = "environment",
        .type = kTextMap,
        .fallback = "{}",
        .used = true,
        .applies = Applies::kCommand,
        .store = into<&ModelSettings::environment>,
        .doc = "Environment variables of the command, with the same placeholders as `command`: "
               "a key is safer here, as arguments can be seen by every user. Besides these "
               "it gets `PATH`, `HOME`, `LANG`, `TMPDIR`, `XDG_…` and what configures "
               "device drivers from the environment of berthd."},
    SettingSpec{.section = Section::kModel,
                .key = "directory",
                .type = kPath,
                .fallback = R"("")",
                .may_be_empty = true,
                .used = true,
                .applies = Applies::kCommand,
                .store = into<&ModelSettings::directory>,
                .doc = "Working directory of the command; empty is `/`."},
    SettingSpec{.section = Section::kModel,
                .key = "probe",
                .type = kProbe,
                .fallback = R"("completion")",
                .used = true,
                .applies = Applies::kCommand,
                .store = into<&ModelSettings::probe>,
                .doc =
                    "What proves that the command is ready: a `completion` or an `embedding` that "
                    "it has computed, or `path:/…`, a path that must answer 200."},
    SettingSpec{.section = Section::kModel,
                .key = "memory",
                .type = kSizeMap,
                .fallback = "{}",
                .low = kMiB,
                .high = kPiB,
                .used = true,
                .applies = Applies::kCommand,
                .store = into<&ModelSettings::memory>,
                .doc = "Memory that the command needs, by domain: `host` or a device's id. Empty: "
                       "it is measured."},
};

}  // namespace

std::span<const SectionSpec> all_sections() {
  return kSections;
}

const SectionSpec& section_spec(Section section) {
  return *std::find_if(kSections.begin(), kSections.end(),
                       [&](const SectionSpec& spec) { return spec.section == section; });
}

std::vector<const SettingSpec*> settings_of(Section section) {
  const bool defaults = section == Section::kDefaults;
  std::vector<const SettingSpec*> found;
  for (const SettingSpec& spec : kSettings) {
    if (spec.section == (defaults ? Section::kModel : section) && !(defaults && spec.only_own)) {
      found.push_back(&spec);
    }
  }
  return found;
}

const SettingSpec* find_setting(Section section, std::string_view key) {
  for (const SettingSpec* spec : settings_of(section)) {
    if (spec->key == key) return spec;
  }
  return nullptr;
}

}  // namespace berth::catalog
