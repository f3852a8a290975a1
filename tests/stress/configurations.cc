#include "tests/stress/configurations.h"

#include <boost/json.hpp>
#include <fstream>
#include <sstream>
#include <utility>

#include "tests/models/adapter.h"
#include "tests/models/draft_pair.h"
#include "tests/models/random_model.h"

namespace berth::stress {
namespace {

namespace json = boost::json;
using test_models::ModelOptions;

constexpr std::int64_t kAnswerRoom = 60;  // tokens
constexpr int kCanaries = 6;              // of a model with random weights

std::string chat_template(const std::string& name) {
  return BERTH_MODELS "/templates/" + name + ".jinja";
}

Canary question(const json::array& messages, const std::string& answer) {
  Canary canary;
  canary.request.mutable_chat()->set_messages_json(json::serialize(messages));
  canary.request.mutable_sampling()->set_temperature(0);
  canary.text = answer;
  return canary;
}

// tinychat's conversations, as far as they fit.
Result<std::vector<Canary>> tinychat_questions(std::int64_t window) {
  std::ifstream file(BERTH_MODELS "/samples.json");
  std::ostringstream text;
  text << file.rdbuf();
  json::error_code error;
  const auto samples = json::parse(text.str(), error);
  if (error) return fail(Reason::kInternal, "samples.json: " + error.message());
  std::vector<Canary> canaries;
  for (const auto& conversation : samples.as_array()) {
    json::array messages;
    for (const auto& turn : conversation.at("turns").as_array()) {
      if (turn.at("prompt_tokens").as_int64() + kAnswerRoom > window) break;
      messages.emplace_back(json::object{{"role", "user"}, {"content", turn.at("user")}});
      const std::string answer(turn.at("expected").as_string());
      canaries.push_back(question(messages, answer));
      messages.emplace_back(json::object{{"role", "assistant"}, {"content", answer}});
    }
  }
  return canaries;
}

// Words of the vocabulary of random models, always the same for the same number.
std::vector<Canary> word_questions() {
  constexpr int kFirstWord = 300;
  constexpr int kWords = 700;
  constexpr std::uint32_t kAnswer = 24;  // tokens
  std::vector<Canary> canaries;
  for (int which = 0; which < kCanaries; ++which) {
    Canary canary;
    auto& ids = *canary.request.mutable_tokens()->mutable_ids();
    ids.Add(1);
    for (int i = 0; i < 10 + which * 12; ++i) ids.Add(kFirstWord + (which * 50 + i * 37) % kWords);
    canary.request.mutable_sampling()->set_temperature(0);
    canary.request.set_max_tokens(kAnswer);
    *canary.embed.add_inputs()->mutable_tokens() = canary.request.tokens();
    canary.embed.mutable_inputs(0)->mutable_tokens()->mutable_ids()->Truncate(10);
    canaries.push_back(canary);
  }
  return canaries;
}

Result<Configuration> tinychat(const std::string& sequences, const std::string& context,
                               const std::string& chat_template_path) {
  auto canaries = tinychat_questions(std::stoll(context) / 2);
  if (!canaries) return fail(canaries.error());
  Configuration made{"tinychat-" + sequences,
                     BERTH_MODELS "/tinychat.gguf",
                     {"--context", context, "--sequences", sequences},
                     std::move(*canaries)};
  if (!chat_template_path.empty()) {
    made.arguments.insert(made.arguments.end(), {"--chat-template", chat_template_path});
  }
  return made;
}

// What a model with random weights says is the same in batches of any shape only so.
std::vector<std::string> exact_arguments(const std::string& template_name,
                                         const std::string& threads = "1") {
  return {"--context",         "768",   "--sequences",     "4",
          "--threads",         threads, "--kv-type",       "f32",
          "--flash-attention", "off",   "--chat-template", chat_template(template_name)};
}

ModelOptions random_options(const std::string& architecture) {
  ModelOptions options;
  options.architecture = architecture;
  options.layers = 4;
  options.weights = test_models::TensorType::kF32;
  return options;
}

Result<Configuration> random_model(const std::string& directory, const std::string& architecture,
                                   const std::string& template_name,
                                   const std::string& threads = "1") {
  const auto files = test_models::write_model(random_options(architecture),
                                              directory + "/" + architecture + ".gguf");
  if (!files) return fail(files.error());
  return Configuration{architecture, files->front(), exact_arguments(template_name, threads),
                       word_questions()};
}

Result<Configuration> encoder(const std::string& directory) {
  const auto files = test_models::write_model(random_options("bert"), directory + "/bert.gguf");
  if (!files) return fail(files.error());
  return Configuration{
      "bert", files->front(), {"--context", "256", "--sequences", "4"}, word_questions()};
}

Result<Configuration> draft_with_adapter(const std::string& directory) {
  auto options = random_options("llama");
  options.layers = 6;
  const auto target = directory + "/target.gguf";
  const auto draft = directory + "/draft.gguf";
  const auto adapter = directory + "/adapter.gguf";
  if (auto made = test_models::write_draft_pair(options, target, draft); !made) {
    return fail(made.error());
  }
  test_models::AdapterOptions weak;
  weak.strength = 0.1F;
  auto lora = test_models::make_adapter(options, weak);
  if (!lora) return fail(lora.error());
  if (auto written = lora->write(adapter); !written) return fail(written.error());
  auto arguments = exact_arguments("command_r7b");
  arguments.insert(arguments.end(), {"--draft", draft, "--adapter", adapter + "=0.5"});
  return Configuration{"draft", target, std::move(arguments), word_questions()};
}

}  // namespace

Result<std::vector<Configuration>> all_configurations(const std::string& directory) {
  std::vector<Configuration> all;
  const auto add = [&](Result<Configuration> made) -> Status {
    if (!made) return fail(made.error());
    all.push_back(std::move(*made));
    return {};
  };
  for (auto added :
       {add(tinychat("1", "1024", "")), add(tinychat("4", "2048", chat_template("hermes_tools"))),
        add(tinychat("16", "2048", chat_template("qwen3"))),
        add(random_model(directory, "mamba", "deepseek_r1", "2")),
        add(random_model(directory, "gemma3", "llama31_tools")), add(draft_with_adapter(directory)),
        add(encoder(directory)), add(random_model(directory, "mixtral", "mistral_v3_tools")),
        add(random_model(directory, "jamba", "granite"))}) {
    if (!added) return fail(added.error());
  }
  return all;
}

}  // namespace berth::stress
