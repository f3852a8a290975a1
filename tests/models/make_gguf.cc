// Writes GGUF files with random weights, and broken ones, for tests and experiments.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/models/adapter.h"
#include "tests/models/architectures.h"
#include "tests/models/broken_models.h"
#include "tests/models/draft_pair.h"
#include "tests/models/projector.h"
#include "tests/models/random_model.h"

namespace {

using berth::test_models::AdapterOptions;
using berth::test_models::GgufWriter;
using berth::test_models::ModelOptions;
using berth::test_models::Pooling;
using berth::test_models::TensorType;
using berth::test_models::Tokenizer;

// What the command line asks for.
struct Request {
  ModelOptions model;
  AdapterOptions adapter;
  std::string path;
  std::string draft;
  std::string fault;
  bool writes_adapter = false;
  bool writes_projector = false;
};

int report(const berth::Error& error) {
  std::fprintf(stderr, "make_gguf: %s\n", error.message.c_str());
  return 1;
}

template <typename Infos>
std::string names_of(const Infos& infos) {
  std::string names;
  for (const auto& info : infos) {
    if (!names.empty()) names += ", ";
    names += info.name;
  }
  return names;
}

int no_such_fault(const std::string& name) {
  const std::string faults = names_of(berth::test_models::all_faults());
  std::fprintf(stderr, "make_gguf: there is no fault '%s'; there are %s, and all\n", name.c_str(),
               faults.c_str());
  return 2;
}

int write_bytes(const std::string& path, std::string_view bytes) {
  if (const auto written = berth::test_models::write_file(path, bytes); !written) {
    return report(written.error());
  }
  std::printf("%s\n", path.c_str());
  return 0;
}

// A file that is no model, with a fault that any file can have, or with none.
int write_file_with_fault(GgufWriter file, const Request& request) {
  if (request.fault.empty()) return write_bytes(request.path, file.bytes());
  const auto fault = berth::test_models::fault_from_name(request.fault);
  if (!fault) return no_such_fault(request.fault);
  const auto bytes = berth::test_models::damaged_bytes(std::move(file), *fault);
  return bytes ? write_bytes(request.path, *bytes) : report(bytes.error());
}

int write_adapter(const Request& request) {
  const auto fault = berth::test_models::adapter_fault_from_name(request.fault);
  auto adapter = berth::test_models::make_adapter(request.model, request.adapter, fault);
  if (!adapter) return report(adapter.error());
  if (fault) return write_bytes(request.path, adapter->bytes());
  return write_file_with_fault(std::move(*adapter), request);
}

int write_all_broken(const Request& request) {
  for (const auto& info : berth::test_models::all_faults()) {
    const std::string path = request.path + "/" + std::string(info.name) + ".gguf";
    const auto written = berth::test_models::write_broken_model(info.fault, path, request.model);
    if (!written) return report(written.error());
    std::printf("%s\n", written->c_str());
  }
  return 0;
}

int write_broken(const Request& request) {
  const auto fault = berth::test_models::fault_from_name(request.fault);
  if (!fault) return no_such_fault(request.fault);
  const auto written = berth::test_models::write_broken_model(*fault, request.path, request.model);
  if (!written) return report(written.error());
  std::printf("%s\n", written->c_str());
  return 0;
}

int write_good(const Request& request) {
  if (!request.draft.empty()) {
    const auto written =
        berth::test_models::write_draft_pair(request.model, request.path, request.draft);
    if (!written) return report(written.error());
    std::printf("%s\n%s\n", request.path.c_str(), request.draft.c_str());
    return 0;
  }
  const auto files = berth::test_models::write_model(request.model, request.path);
  if (!files) return report(files.error());
  for (const std::string& file : *files) std::printf("%s\n", file.c_str());
  return 0;
}

int write(const Request& request) {
  if (request.writes_projector) {
    return write_file_with_fault(berth::test_models::make_projector(), request);
  }
  if (request.writes_adapter) return write_adapter(request);
  if (request.fault == "all") return write_all_broken(request);
  return request.fault.empty() ? write_good(request) : write_broken(request);
}

std::string architecture_lines() {
  std::string lines = "Architectures:\n";
  for (const auto& kind : berth::test_models::all_architectures()) {
    std::string name(kind.name);
    name.resize(12, ' ');
    lines += "  " + name + std::string(kind.summary) + "\n";
  }
  return lines;
}

void add_size_options(CLI::App& app, ModelOptions& model) {
  app.add_option("--name", model.name, "general.name")->capture_default_str();
  app.add_option("--layers", model.layers)->capture_default_str();
  app.add_option("--heads", model.heads)->capture_default_str();
  app.add_option("--kv-heads", model.kv_heads)->capture_default_str();
  app.add_option("--embedding", model.embedding)->capture_default_str();
  app.add_option("--feed-forward", model.feed_forward)->capture_default_str();
  app.add_option("--vocabulary", model.vocabulary, "Tokens")->capture_default_str();
  app.add_option("--context", model.context, "Tokens")->capture_default_str();
  app.add_option("--experts", model.experts, "Of a mixture")->capture_default_str();
  app.add_option("--experts-used", model.experts_used, "For each token")->capture_default_str();
  app.add_option("--sliding-window", model.sliding_window, "Tokens, with gemma2 and gemma3")
      ->capture_default_str();
}

void add_form_options(CLI::App& app, ModelOptions& model) {
  const std::map<std::string, Tokenizer> tokenizers = {{"bpe", Tokenizer::kBpe},
                                                       {"spm", Tokenizer::kSpm},
                                                       {"wpm", Tokenizer::kWpm},
                                                       {"none", Tokenizer::kNone}};
  const std::map<std::string, Pooling> poolings = {{"none", Pooling::kNone},
                                                   {"mean", Pooling::kMean},
                                                   {"cls", Pooling::kCls},
                                                   {"last", Pooling::kLast}};
  app.add_option_function<std::string>(
      "--type",
      [&model](const std::string& name) {
        const auto type = berth::test_models::type_from_name(name);
        if (!type) throw CLI::ValidationError("--type", "there is no type '" + name + "'");
        model.weights = *type;
      },
      "Of the matrices: f32, f16, q8_0, q4_0, q4_K, q5_K, q6_K; default f16");
  app.add_option("--tokenizer", model.tokenizer,
                 "bpe, spm, wpm, none; default bpe, for encoders wpm")
      ->transform(CLI::CheckedTransformer(tokenizers));
  app.add_option("--pooling", model.pooling,
                 "none, mean, cls, last: makes a model for embeddings; default for encoders mean")
      ->transform(CLI::CheckedTransformer(poolings));
  app.add_flag("--tied", model.tied_output, "The output uses the embedding's weights");
  app.add_option("--shards", model.shards)->capture_default_str();
  app.add_option("--seed", model.seed)->capture_default_str();
}

void add_companion_options(CLI::App& app, Request& request) {
  app.add_option("--draft", request.draft,
                 "Also writes a smaller model to this file, which often says the same");
  app.add_option("--early-layers", request.model.early_layers, "Layers of the draft")
      ->capture_default_str();
  app.add_option("--later-layers", request.model.later_layers,
                 "How much the layers after those add: near 0 the draft is always right")
      ->capture_default_str();
  app.add_option("--sureness", request.model.sureness,
                 "What logits are multiplied by: 20 is like trained models; --draft: 20")
      ->capture_default_str();
  app.add_flag("--adapter", request.writes_adapter,
               "Writes a LoRA adapter for the model with the other options");
  app.add_option("--rank", request.adapter.rank, "Of the adapter")->capture_default_str();
  app.add_option("--alpha", request.adapter.alpha, "Of the adapter")->capture_default_str();
  app.add_option("--strength", request.adapter.strength, "Of the adapter: 1 changes every text")
      ->capture_default_str();
  app.add_flag("--projector", request.writes_projector,
               "Writes an image projector (mmproj): a header and no sense");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Writes a GGUF file with random weights, or a broken one.");
  app.footer(architecture_lines());
  Request request;
  std::string template_file;
  bool no_template = false;

  app.add_option("PATH", request.path, "The file to write; a directory with --broken all")
      ->required();
  // The preset comes first, whatever the order of the arguments: the others change it.
  app.add_option_function<std::string>(
         "--preset",
         [&request](const std::string& name) { request.model = *berth::test_models::preset(name); },
         "200m: the sizes of a llama with 207 million parameters")
      ->check(CLI::IsMember({"200m"}))
      ->trigger_on_parse();
  app.add_option("--architecture,--arch", request.model.architecture,
                 "One of the list below; another name: a llama with that name")
      ->capture_default_str();
  add_size_options(app, request.model);
  add_form_options(app, request.model);
  app.add_option("--chat-template", template_file, "File with the template; default ChatML")
      ->check(CLI::ExistingFile);
  app.add_flag("--no-chat-template", no_template);
  add_companion_options(app, request);
  app.add_option("--broken", request.fault,
                 "One of " + names_of(berth::test_models::all_faults()) +
                     ", or all; of an adapter also " +
                     names_of(berth::test_models::all_adapter_faults()));
  CLI11_PARSE(app, argc, argv);

  if (!template_file.empty()) {
    std::ifstream in(template_file, std::ios::binary);
    request.model.chat_template = std::string(std::istreambuf_iterator<char>(in), {});
  }
  if (no_template) request.model.chat_template.reset();
  return write(request);
}
