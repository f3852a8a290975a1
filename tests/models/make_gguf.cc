// Writes GGUF files with random weights, and broken ones, for tests and experiments.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tests/models/broken_models.h"
#include "tests/models/random_model.h"

namespace {

using berth::test_models::ModelOptions;
using berth::test_models::TensorType;
using berth::test_models::Tokenizer;

int report(const berth::Error& error) {
  std::fprintf(stderr, "make_gguf: %s\n", error.message.c_str());
  return 1;
}

std::string fault_names() {
  std::string names;
  for (const auto& info : berth::test_models::all_faults()) {
    if (!names.empty()) names += ", ";
    names += info.name;
  }
  return names;
}

int write_all_broken(const std::string& directory, const ModelOptions& options) {
  for (const auto& info : berth::test_models::all_faults()) {
    const std::string path = directory + "/" + std::string(info.name) + ".gguf";
    const auto written = berth::test_models::write_broken_model(info.fault, path, options);
    if (!written) return report(written.error());
    std::printf("%s\n", written->c_str());
  }
  return 0;
}

int write_broken(const std::string& fault_name, const std::string& path,
                 const ModelOptions& options) {
  const auto fault = berth::test_models::fault_from_name(fault_name);
  if (!fault) {
    std::fprintf(stderr, "make_gguf: there is no fault '%s'; there are %s, and all\n",
                 fault_name.c_str(), fault_names().c_str());
    return 2;
  }
  const auto written = berth::test_models::write_broken_model(*fault, path, options);
  if (!written) return report(written.error());
  std::printf("%s\n", written->c_str());
  return 0;
}

int write_good(const std::string& path, const ModelOptions& options) {
  const auto files = berth::test_models::write_model(options, path);
  if (!files) return report(files.error());
  for (const std::string& file : *files) std::printf("%s\n", file.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Writes a GGUF file with random weights, or a broken one.");
  ModelOptions options;
  std::string path;
  std::string fault;
  std::string template_file;
  bool no_template = false;
  const std::map<std::string, TensorType> types = {
      {"f32", TensorType::kF32}, {"f16", TensorType::kF16}, {"q8_0", TensorType::kQ8_0}};
  const std::map<std::string, Tokenizer> tokenizers = {
      {"bpe", Tokenizer::kBpe}, {"spm", Tokenizer::kSpm}, {"none", Tokenizer::kNone}};

  app.add_option("PATH", path, "The file to write; a directory with --broken all")->required();
  app.add_option("--name", options.name, "general.name")->capture_default_str();
  app.add_option("--layers", options.layers)->capture_default_str();
  app.add_option("--heads", options.heads)->capture_default_str();
  app.add_option("--kv-heads", options.kv_heads)->capture_default_str();
  app.add_option("--embedding", options.embedding)->capture_default_str();
  app.add_option("--feed-forward", options.feed_forward)->capture_default_str();
  app.add_option("--vocabulary", options.vocabulary, "Tokens")->capture_default_str();
  app.add_option("--context", options.context, "Tokens")->capture_default_str();
  app.add_option("--type", options.weights, "Of the matrices: f32, f16, q8_0; default f16")
      ->transform(CLI::CheckedTransformer(types));
  app.add_option("--tokenizer", options.tokenizer, "bpe, spm, none; default bpe")
      ->transform(CLI::CheckedTransformer(tokenizers));
  app.add_option("--chat-template", template_file, "File with the template; default ChatML")
      ->check(CLI::ExistingFile);
  app.add_flag("--no-chat-template", no_template);
  app.add_flag("--tied", options.tied_output, "The output uses the embedding's weights");
  app.add_option("--shards", options.shards)->capture_default_str();
  app.add_option("--seed", options.seed)->capture_default_str();
  app.add_option("--broken", fault, "One of " + fault_names() + ", or all");
  CLI11_PARSE(app, argc, argv);

  if (!template_file.empty()) {
    std::ifstream in(template_file, std::ios::binary);
    options.chat_template = std::string(std::istreambuf_iterator<char>(in), {});
  }
  if (no_template) options.chat_template.reset();
  if (fault == "all") return write_all_broken(path, options);
  if (!fault.empty()) return write_broken(fault, path, options);
  return write_good(path, options);
}
