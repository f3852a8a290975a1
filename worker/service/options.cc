#include "worker/service/options.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "common/text.h"
#include "common/uuid.h"
#include "worker/service/option_values.h"

namespace berth::worker {
namespace {

constexpr std::uint32_t kMaxContext = 1U << 24U;
constexpr std::uint32_t kMaxSequences = 1024;
constexpr std::uint32_t kMaxThreads = 1024;
constexpr std::uint32_t kMinBatch = 64;  // must hold one token of every sequence
constexpr std::uint32_t kMaxBatch = 16384;
constexpr std::uint32_t kMaxLayers = 100000;
constexpr std::uint32_t kMaxDraftTokens = 16;
constexpr std::size_t kShownBytes = 80;

tl::unexpected<Error> usage(std::string message) {
  return fail(Reason::kInvalidArgument, std::move(message));
}

constexpr std::array<std::string_view, 9> kKvTypes = {"f32",  "f16",  "bf16", "q8_0",  "q5_1",
                                                      "q5_0", "q4_1", "q4_0", "iq4_nl"};
constexpr std::array<std::string_view, 3> kFlashAttention = {"auto", "on", "off"};
constexpr std::array<std::string_view, 2> kSwitch = {"on", "off"};
constexpr std::array<std::string_view, 3> kPoolings = {"mean", "cls", "last"};

struct Option {
  std::string_view name;
  bool takes_value;
  std::function<Status(Options&, std::string_view)> set;
  bool repeats = false;
};

using O = Options;
using Text = std::string_view;

// Where the model goes, and what goes with it.
std::vector<Option> placement_options() {
  return {
      {"--device", true, [](O& o, Text v) { return add_names("--device", v, o.engine.devices); },
       true},
      {"--device-layers", true,
       [](O& o, Text v) {
         return set_number("--device-layers", v, 0, kMaxLayers, o.engine.device_layers.emplace());
       }},
      {"--device-split", true,
       [](O& o, Text v) { return set_shares("--device-split", v, o.engine.device_split); }},
      {"--adapter", true,
       [](O& o, Text v) { return add_scaled_path("--adapter", v, o.engine.adapters); }, true},
      {"--draft", true, [](O& o, Text v) { return set_text("--draft", v, o.engine.draft_path); }},
      {"--draft-tokens", true,
       [](O& o, Text v) {
         return set_number("--draft-tokens", v, 1, kMaxDraftTokens, o.engine.draft_tokens);
       }},
      {"--embeddings", false,
       [](O& o, Text) -> Status {
         o.engine.purpose = Purpose::kEmbed;
         return {};
       }},
      {"--pooling", true,
       [](O& o, Text v) { return set_choice("--pooling", v, kPoolings, o.engine.pooling); }},
  };
}

std::vector<Option> base_options() {
  constexpr auto kMaxFd = static_cast<std::uint32_t>(std::numeric_limits<std::int16_t>::max());
  return {
      {"--model", true, [](O& o, Text v) { return set_text("--model", v, o.engine.model_path); }},
      {"--socket", true, [](O& o, Text v) { return set_text("--socket", v, o.socket); }},
      {"--context", true,
       [](O& o, Text v) { return set_number("--context", v, 16, kMaxContext, o.engine.context); }},
      {"--sequences", true,
       [](O& o, Text v) {
         return set_number("--sequences", v, 1, kMaxSequences, o.engine.sequences);
       }},
      {"--threads", true,
       [](O& o, Text v) { return set_number("--threads", v, 1, kMaxThreads, o.engine.threads); }},
      {"--batch", true,
       [](O& o, Text v) { return set_number("--batch", v, kMinBatch, kMaxBatch, o.engine.batch); }},
      {"--kv-type", true,
       [](O& o, Text v) { return set_choice("--kv-type", v, kKvTypes, o.engine.kv_type); }},
      {"--flash-attention", true,
       [](O& o, Text v) {
         return set_choice("--flash-attention", v, kFlashAttention, o.engine.flash_attention);
       }},
      {"--chat-template", true,
       [](O& o, Text v) { return set_text("--chat-template", v, o.chat_template); }},
      {"--template-program", true,
       [](O& o, Text v) { return set_text("--template-program", v, o.template_program); }},
      {"--instance", true,
       [](O& o, Text v) -> Status {
         if (Uuid::parse(v).is_nil()) {
           return usage("--instance must be a UUID, not \"" + printable_line(v, kShownBytes) +
                        "\".");
         }
         o.instance = v;
         return {};
       }},
      {"--notify-fd", true,
       [](O& o, Text v) -> Status {
         std::uint32_t fd = 0;
         auto set = set_number("--notify-fd", v, 3, kMaxFd, fd);
         if (set) o.notify_fd = static_cast<int>(fd);
         return set;
       }},
      {"--parent-stdin", false,
       [](O& o, Text) -> Status {
         o.parent_stdin = true;
         return {};
       }},
      {"--prove-micro-batch", false,
       [](O& o, Text) -> Status {
         o.prove_micro_batch = true;
         return {};
       }},
      {"--sandbox", true,
       [](O& o, Text v) {
         std::string choice;
         auto set = set_choice("--sandbox", v, kSwitch, choice);
         if (set) o.sandbox = choice == "on";
         return set;
       }},
      {"--sandbox-report", false,
       [](O& o, Text) -> Status {
         o.action = Options::Action::kSandboxReport;
         return {};
       }},
      {"--version", false,
       [](O& o, Text) -> Status {
         o.action = Options::Action::kVersion;
         return {};
       }},
      {"--devices", false,
       [](O& o, Text) -> Status {
         o.action = Options::Action::kDevices;
         return {};
       }},
      {"--knows-architecture", true,
       [](O& o, Text v) {
         o.action = Options::Action::kArchitecture;
         return set_text("--knows-architecture", v, o.architecture);
       }},
      {"--help", false,
       [](O& o, Text) -> Status {
         o.action = Options::Action::kHelp;
         return {};
       }},
  };
}

const std::vector<Option>& option_table() {
  static const auto* const table = [] {
    auto* const all = new std::vector<Option>(base_options());
    for (auto& option : placement_options()) all->push_back(std::move(option));
    return all;
  }();
  return *table;
}

tl::unexpected<Error> unknown_option(std::string_view argument) {
  std::vector<std::string> names;
  for (const auto& option : option_table()) names.emplace_back(option.name);
  const auto near = nearest_names(std::string(argument), names, 1);
  std::string message =
      "There is no option \"" + printable_line(argument, kShownBytes) + "\" (see --help).";
  if (!near.empty()) message += " Did you mean " + near.front() + "?";
  return usage(std::move(message));
}

// Each sequence has a token and its draft in one batch.
std::uint32_t least_batch(const EngineSettings& engine) {
  return engine.sequences * (1 + (engine.draft_path.empty() ? 0 : engine.draft_tokens));
}

Status check_placement(const EngineSettings& engine) {
  const auto& split = engine.device_split;
  if (engine.devices.empty() && (engine.device_layers || !split.empty())) {
    return usage("--device-layers and --device-split need --device.");
  }
  if (!split.empty() && split.size() != engine.devices.size()) {
    return usage("--device-split has " + std::to_string(split.size()) + " shares for " +
                 std::to_string(engine.devices.size()) + " devices.");
  }
  if (engine.purpose == Purpose::kEmbed && !engine.draft_path.empty()) {
    return usage("--embeddings and --draft do not go together.");
  }
  if (least_batch(engine) > engine.batch) {
    return usage("--batch must be at least " + std::to_string(least_batch(engine)) +
                 " for so many sequences and draft tokens.");
  }
  return {};
}

Status check(const Options& options) {
  if (options.action != Options::Action::kServe) return {};
  if (options.engine.model_path.empty()) return usage("--model PATH is missing.");
  if (options.socket.empty()) return usage("--socket PATH is missing.");
  const auto& kv = options.engine.kv_type;
  const bool quantized = kv != "f32" && kv != "f16" && kv != "bf16";
  if (quantized && options.engine.flash_attention == "off") {
    return usage("--kv-type " + kv + " needs flash attention: --flash-attention auto or on.");
  }
  return check_placement(options.engine);
}

}  // namespace

Result<Options> parse_options(std::span<const char* const> arguments) {
  Options options;
  std::vector<std::string_view> seen;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument(arguments[i]);
    const auto equals = argument.find('=');
    const auto name = argument.substr(0, equals);
    const auto& table = option_table();
    const auto option = std::find_if(table.begin(), table.end(),
                                     [name](const Option& one) { return one.name == name; });
    if (option == table.end()) return unknown_option(name);
    if (!option->repeats && std::find(seen.begin(), seen.end(), option->name) != seen.end()) {
      return usage(std::string(name) + " is given twice.");
    }
    seen.push_back(option->name);
    std::string_view value;
    if (option->takes_value) {
      if (equals != std::string_view::npos) {
        value = argument.substr(equals + 1);
      } else if (i + 1 < arguments.size()) {
        value = arguments[++i];
      } else {
        return usage(std::string(name) + " needs a value.");
      }
    } else if (equals != std::string_view::npos) {
      return usage(std::string(name) + " takes no value.");
    }
    if (auto set = option->set(options, value); !set) return fail(set.error());
  }
  if (std::find(seen.begin(), seen.end(), "--batch") == seen.end()) {
    options.engine.batch = std::max(options.engine.batch, least_batch(options.engine));
  }
  if (auto checked = check(options); !checked) return fail(checked.error());
  return options;
}

std::string_view help_text() {
  return R"(berth-worker serves one model to berthd: a GGUF file, by gRPC on a Unix socket.

  --model PATH             the model; of a split model its first file
  --socket PATH            where to listen: in a directory of mode 0700, fewer than 108 bytes
  --context N              tokens of one sequence (default: as the model was trained, up to 32768)
  --sequences N            requests at once, which share the window (1 to 1024, default 1)
  --threads N              compute threads (default: the cores that the process may use)
  --batch N                most tokens computed at once (64 to 16384; default 512, or
                           as many as the sequences and their drafts need)
  --kv-type TYPE           f32, f16 (default), bf16, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl
  --flash-attention MODE   auto (default), on, off
  --chat-template FILE     a Jinja chat template instead of the model's own, or the name of one of
                           libllama's (chatml)
  --template-program PATH  berth-template, which renders it (default: beside this program)
  --device NAME[,NAME]     devices that hold the model's layers, also repeated (default: none, the
                           processor); a device that is not there ends the load
  --device-layers N        layers on them, with the output as the last (default: all)
  --device-split N[,N]     share of each device (default: by free memory)
  --adapter PATH[=SCALE]   a LoRA adapter (scale 1); repeated for more
  --draft PATH             a small model that guesses ahead; the answer stays the same
  --draft-tokens N         most tokens that it guesses at once (1 to 16, default 8)
  --embeddings             gives embeddings; models that can only embed do so in any case
  --pooling TYPE           mean, cls or last (default: the file's, else what suits the model)
  --instance UUID          the instance's id, checked against the supervisor's greeting
  --notify-fd N            writes "listening" to this descriptor once clients can connect
  --parent-stdin           exits when its standard input ends
  --prove-micro-batch      computes as many tokens as are ever computed at once before it is ready,
                           so that memory which that lacks is missed now (default: one token)
  --sandbox on|off         off: the worker may do all that its user may (default: on)
  --sandbox-report         says as JSON which parts of the sandbox this kernel has, and exits
  --devices                lists ggml's devices as JSON and exits
  --knows-architecture NAME  says whether libllama has it, and exits
  --version, --help
)";
}

}  // namespace berth::worker
