#include "supervisor/catalog/config_warnings.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "common/gguf/gguf.h"
#include "common/text.h"
#include "supervisor/catalog/catalog.h"
#include "supervisor/catalog/toml_document.h"

namespace berth::catalog {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShownBytes = 300;

std::string shown(const std::string& text) {
  return printable_line(text, kShownBytes);
}

std::string section_of(const std::string& model) {
  return "[model." + toml_quote(model) + "]";
}

void add_missing(const std::string& key, const std::string& path, std::vector<std::string>& to) {
  std::error_code error;
  if (path.empty() || fs::exists(path, error)) return;
  to.push_back(key + " names " + shown(path) + ", which " +
               (error ? "cannot be looked at: " + error.message() : std::string("is not there")) +
               ".");
}

void add_missing_of(const ConfiguredModel& configured, const ModelSettings& settings,
                    std::vector<std::string>& to) {
  const std::string section = section_of(configured.name) + " ";
  add_missing(section + "draft", settings.draft, to);
  for (const std::string& adapter : settings.adapters) {
    add_missing(section + "adapters", adapter, to);
  }
  if (settings.kind == Kind::kCommand) add_missing(section + "directory", settings.directory, to);
}

// A directory of models finds files in itself and one level below.
bool is_in_model_dir(const Config& config, const fs::path& file) {
  const fs::path folder = file.parent_path().lexically_normal();
  return std::ranges::any_of(config.model_dirs, [&folder](const std::string& dir) {
    const fs::path whole = (fs::path(dir) / "").lexically_normal().parent_path();
    return whole == folder || whole == folder.parent_path();
  });
}

// Its file would be there under the file's own name, were it not for the section.
void add_taken_name(const Config& config, const Catalog& catalog, const ConfiguredModel& configured,
                    std::vector<std::string>& to) {
  if (configured.path.empty() || !is_in_model_dir(config, configured.path)) return;
  const std::string own = gguf::model_name(fs::path(configured.path).filename().string());
  if (catalog.find(own)) return;
  to.push_back(section_of(configured.name) + " takes " + shown(configured.path) +
               ", which is then no model " + toml_quote(shown(own)) +
               " any more: add `aliases = [" + toml_quote(shown(own)) +
               "]` where it shall have both names.");
}

}  // namespace

std::vector<std::string> config_warnings(const Config& config) {
  std::vector<std::string> warnings;
  add_missing("server.tls_cert", config.server.tls_cert, warnings);
  add_missing("server.tls_key", config.server.tls_key, warnings);
  add_missing("auth.keys_file", config.auth.keys_file, warnings);
  const ScanResult scanned = scan(config);
  warnings.insert(warnings.end(), scanned.problems.begin(), scanned.problems.end());
  for (const ConfiguredModel& configured : config.models) {
    const auto model = scanned.catalog.find(configured.name);
    if (!model) continue;
    if (!(*model)->problem.empty()) {
      warnings.push_back(section_of(configured.name) + " cannot be used: " + (*model)->problem);
    }
    add_missing_of(configured, (*model)->settings, warnings);
    add_taken_name(config, scanned.catalog, configured, warnings);
  }
  if (warnings.size() > kMostWarnings) warnings.resize(kMostWarnings);
  return warnings;
}

}  // namespace berth::catalog
