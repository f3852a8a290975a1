#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "common/gguf/gguf.h"
#include "common/text.h"
#include "supervisor/catalog/catalog.h"
#include "supervisor/catalog/file_stamp.h"
#include "supervisor/catalog/file_words.h"
#include "supervisor/catalog/model_parts.h"
#include "supervisor/catalog/placeholders.h"
#include "supervisor/catalog/setting_value.h"
#include "supervisor/catalog/toml_document.h"

namespace berth::catalog {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxProblems = 1000;
constexpr off_t kMaxTemplateBytes = off_t{256} << 10U;  // as a worker reads them
constexpr std::string_view kSuffix = ".gguf";
constexpr std::uint32_t kUndeclaredContext = 4096;

// Which file a path leads to.
using FileId = std::pair<dev_t, ino_t>;

std::optional<struct stat> stat_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return info;
}

// A directory's own stamp changes when an entry comes or goes, so those of the sub-directories are
// enough to see new files.
std::uint64_t directories_stamp(const Config& config) {
  std::uint64_t stamp = 0;
  for (const std::string& dir : config.model_dirs) {
    stamp = mix_stamp(stamp, file_stamp(dir));
    std::error_code error;
    std::vector<std::string> folders;
    std::size_t entries = 0;
    for (fs::directory_iterator entry(dir, error), end; !error && entry != end;
         entry.increment(error)) {
      if (++entries > ScanLimits().directory_entries) break;
      std::error_code ignored;
      if (entry->is_directory(ignored)) folders.push_back(entry->path().string());
    }
    std::sort(folders.begin(), folders.end());
    stamp = mix_stamp(stamp, files_stamp(folders));
  }
  return stamp;
}

std::uint64_t companions_stamp(const ModelSettings& settings) {
  std::uint64_t stamp = 0;
  for (const std::string& path : companions_of(settings)) {
    const auto info = stat_of(path);
    stamp = mix_stamp(stamp, info ? static_cast<std::uint64_t>(info->st_size) : 0);
    stamp = mix_stamp(stamp, info ? static_cast<std::uint64_t>(info->st_mtim.tv_sec) : 0);
    stamp = mix_stamp(stamp, info ? static_cast<std::uint64_t>(info->st_mtim.tv_nsec) : 0);
  }
  return stamp;
}

std::uint64_t model_stamp(const Model& model) {
  if (model.path.empty()) return 0;
  std::uint64_t stamp =
      model.shards.empty() ? files_stamp({model.path}) : files_stamp(model.shards);
  for (const std::string& path : companions_of(model.settings)) {
    stamp = mix_stamp(stamp, file_stamp(path));
  }
  return stamp;
}

// A model file in a directory.
struct Candidate {
  std::string path;
  std::string problem;  // known without reading it
};

// One scan. Lives for it; any thread.
class Scan {
 public:
  Scan(const Config& config, const Catalog* previous, ScanLimits limits)
      : config_(config), limits_(limits), parts_(previous) {
    if (previous == nullptr) return;
    for (const auto& model : previous->models()) {
      if (model->header_hash != 0) known_[model->path] = model.get();
    }
  }

  ScanResult run() {
    result_.stamp = directories_stamp(config_);
    for (const ConfiguredModel& model : config_.models) {
      if (model.path.empty()) {
        wanted_names_.insert(model.name);
      } else if (const auto info = stat_of(model.path)) {
        configured_files_.insert({info->st_dev, info->st_ino});
      }
    }
    for (const std::string& dir : config_.model_dirs) list_directory(dir);
    for (const ConfiguredModel& configured : config_.models) add_configured(configured);
    for (const auto& [name, candidate] : candidates_) add_found(name, candidate);
    drop_taken_aliases();

    std::vector<std::shared_ptr<const Model>> models;
    models.reserve(models_.size());
    for (auto& [name, model] : models_) {
      result_.stamp = mix_stamp(result_.stamp, stamps_[name]);
      models.push_back(std::make_shared<const Model>(std::move(model)));
    }
    result_.catalog = Catalog(std::move(models));
    return std::move(result_);
  }

 private:
  void problem(std::string text) {
    if (result_.problems.size() < kMaxProblems) result_.problems.push_back(std::move(text));
  }

  // --- the directories ---

  void list_directory(const std::string& dir) {
    std::size_t budget = limits_.directory_entries + 1;  // one more shows that there are more
    std::vector<std::string> folders;
    list_files(dir, budget, &folders);
    for (const std::string& folder : folders) {
      if (budget == 0) break;
      list_files(folder, budget, nullptr);
    }
    if (budget == 0) {
      problem(printable_line(dir, 300) + " has more than " +
              std::to_string(limits_.directory_entries) +
              " entries; the rest was not looked at. Move what is no model out of it.");
    }
  }

  // Sub-directories are collected in `folders`, or passed over where there is none.
  void list_files(const std::string& dir, std::size_t& budget, std::vector<std::string>* folders) {
    std::error_code error;
    std::vector<std::string> files;
    for (fs::directory_iterator entry(dir, error), end; !error && entry != end && budget > 0;
         entry.increment(error)) {
      --budget;
      const std::string name = entry->path().filename().string();
      if (name.starts_with('.') || name == "lost+found") continue;
      std::error_code ignored;
      if (folders != nullptr && entry->is_directory(ignored)) {
        folders->push_back(entry->path().string());
      } else if (name.ends_with(kSuffix) && name.size() > kSuffix.size() &&
                 !entry->is_directory(ignored)) {
        files.push_back(entry->path().string());
      }
    }
    if (error) {
      problem("The directory " + printable_line(dir, 300) + " cannot be read: " + error.message() +
              ". Create it, make it readable for the user that berthd runs as, or take it out of " +
              "`models.dirs`.");
    }
    std::sort(files.begin(), files.end());
    if (folders != nullptr) std::sort(folders->begin(), folders->end());
    add_files(files);
  }

  void add_files(const std::vector<std::string>& files) {
    std::set<std::string> first_shards;  // names, in this directory
    std::map<std::string, std::string> later_shards;
    for (const std::string& path : files) {
      const std::string file_name = fs::path(path).filename().string();
      const std::string name = gguf::model_name(file_name);
      if (gguf::is_later_shard(file_name)) {
        later_shards.emplace(name, path);
        continue;
      }
      first_shards.insert(name);
      add_candidate(name, {path, {}});
    }
    for (const auto& [name, path] : later_shards) {
      if (first_shards.contains(name)) continue;
      add_candidate(name, {path, file_name_of(path) +
                                     " is a later part of a split model whose first part is not "
                                     "beside it; put all parts into one directory."});
    }
  }

  void add_candidate(const std::string& name, Candidate candidate) {
    const std::string shown_path = printable_line(candidate.path, 300);
    const bool invalid = first_invalid_utf8(candidate.path).has_value();
    if (const auto wrong = check_name(name); wrong || invalid) {
      problem(shown_path + " is not used: " + (invalid ? "its path is not valid UTF-8" : *wrong) +
              "; rename it.");
      return;
    }
    if (const auto info = stat_of(candidate.path)) {
      if (!S_ISREG(info->st_mode)) return;
      const FileId id{info->st_dev, info->st_ino};
      const bool again = !found_files_.insert(id).second || configured_files_.contains(id);
      if (again && !wanted_names_.contains(name)) return;
    }
    const auto [first, added] = candidates_.emplace(name, std::move(candidate));
    if (!added) {
      problem(shown_path + " is not used: " + printable_line(first->second.path, 300) +
              " has the same name; rename one of them, or give it a section of its own.");
    }
  }

  // --- the models ---

  void add_configured(const ConfiguredModel& configured) {
    Model model;
    model.name = configured.name;
    model.aliases = configured.aliases;
    model.settings = effective_settings(config_, configured.name);
    model.path = configured.path;
    const auto found = candidates_.find(configured.name);
    if (configured.settings.kind == Kind::kCommand) {
      describe_command(model);
    } else if (!model.path.empty()) {
      read(model, {});
    } else if (found != candidates_.end()) {
      model.path = found->second.path;
      read(model, found->second.problem);
    } else {
      model.problem = "No file is known for it: set `path`, or put " + model.name +
                      std::string(kSuffix) + " into a directory of `models.dirs`.";
    }
    if (found != candidates_.end()) candidates_.erase(found);
    keep(std::move(model));
  }

  void add_found(const std::string& name, const Candidate& candidate) {
    Model model;
    model.name = name;
    model.settings = effective_settings(config_, name);
    model.path = candidate.path;
    if (model.settings.kind == Kind::kCommand) model.settings.kind = Kind::kLlama;
    read(model, candidate.problem);
    keep(std::move(model));
  }

  // Nothing but its probe says what a program does.
  static void describe_command(Model& model) {
    model.can_chat = model.settings.probe == "completion";
    model.can_embed = model.settings.probe == "embedding";
    const std::set<std::string> open = placeholders_of(model.settings);
    if (!open.contains(std::string(kPortPlaceholder)) &&
        !open.contains(std::string(kSocketPlaceholder))) {
      model.problem =
          "Its command does not say where to listen: put `{port}` or `{socket}` into `command` or "
          "`environment`, such as \"--port\", \"{port}\".";
    }
  }

  void keep(Model model) {
    if (!model.problem.empty()) model.served_context = 0;
    std::string name = model.name;
    models_.emplace(std::move(name), std::move(model));
  }

  // Fills in what the file says.
  void read(Model& model, const std::string& known_problem) {
    std::uint64_t& stamp = stamps_[model.name];
    stamp = model_stamp(model);
    std::optional<gguf::WholeModel> whole;
    if (!known_problem.empty()) {
      model.problem = known_problem;
    } else if (!reuse(model)) {
      whole = read_header(model);
    }
    // A split model's other files are known only now.
    if (model.shards.size() > 1) stamp = model_stamp(model);
    if (model.header_hash != 0) {
      model.file_stamp = files_stamp_;
      parts_.fill(model, whole ? &*whole : nullptr);
    }
    model.companions_stamp = companions_stamp(model.settings);
    model.can_chat = model.has_chat_template || !model.settings.chat_template.empty();
    model.served_context =
        served_context(model.settings, model.declared_context, config_.memory.auto_context_max);
    if (model.problem.empty()) check_template(model);
  }

  bool reuse(Model& model) {
    const auto known = known_.find(model.path);
    if (known == known_.end()) return false;
    const Model& old = *known->second;
    if (old.file_stamp == 0 || files_stamp(old.shards) != old.file_stamp) return false;
    model.shards = old.shards;
    model.architecture = old.architecture;
    model.title = old.title;
    model.parameters = old.parameters;
    model.file_bytes = old.file_bytes;
    model.quantization = old.quantization;
    model.declared_context = old.declared_context;
    model.has_chat_template = old.has_chat_template;
    model.can_embed = old.can_embed;
    model.modified = old.modified;
    model.header_hash = old.header_hash;
    files_stamp_ = old.file_stamp;
    return true;
  }

  std::optional<gguf::WholeModel> read_header(Model& model) {
    const std::uint64_t before = file_stamp(model.path);
    auto whole = gguf::read_whole_model(model.path);
    if (!whole) {
      model.problem = explain(model.path, whole.error());
      return std::nullopt;
    }
    gguf::Summary* const summary = &whole->summary;
    model.architecture = summary->architecture;
    model.title = std::move(summary->title);
    model.parameters = summary->parameters;
    model.file_bytes = summary->file_bytes;
    model.quantization = summary->quantization;
    model.declared_context = summary->declared_context;
    model.has_chat_template = summary->has_chat_template;
    model.can_embed = summary->embeds;
    model.modified = WallTime(std::chrono::milliseconds(summary->modified_unix_ms));
    model.shards = summary->shards;
    if (summary->is_projector || summary->is_adapter) {
      model.problem = no_model_of_its_own(file_name_of(model.path), summary->is_projector);
      return std::nullopt;
    }
    model.header_hash = summary->header_hash;
    // Not to be reused where the file changed while it was read.
    files_stamp_ = file_stamp(model.path) == before ? files_stamp(model.shards) : 0;
    return *std::move(whole);
  }

  static std::string no_model_of_its_own(const std::string& file, bool is_projector) {
    if (is_projector) {
      return file + " is a projector (images for another model) and not a model of its own; " +
             "images are not supported by this version.";
    }
    return file + " is an adapter and not a model of its own; name it in `adapters` of the model " +
           "that it was made for.";
  }

  static std::string explain(const std::string& path, const Error& error) {
    const std::string text = without_stop(error.message);
    switch (error.reason) {
      case Reason::kNotFound:
        return text + "; correct `path`, or put the file there.";
      case Reason::kPermissionDenied:
        return text + "; make it readable for the user that berthd runs as.";
      default:
        return gguf::is_later_shard(fs::path(path).filename().string())
                   ? text + "."
                   : text + "; download the file again, or remove it.";
    }
  }

  static void check_template(Model& model) {
    const std::string& path = model.settings.chat_template;
    if (path.empty() || path.starts_with(kBuiltinTemplate)) return;
    const std::string shown = "The chat template " + file_name_of(path);
    const auto info = stat_of(path);
    if (!info) {
      model.problem = shown + " is not there; correct `chat_template`.";
    } else if (!S_ISREG(info->st_mode)) {
      model.problem = shown + " is not a file; correct `chat_template`.";
    } else if (::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) != 0) {
      model.problem = shown + " cannot be read; make it readable for the user that berthd runs as.";
    } else if (info->st_size == 0) {
      model.problem = shown + " is empty; correct it, or `chat_template`.";
    } else if (info->st_size > kMaxTemplateBytes) {
      model.problem = shown + " is longer than 256 KiB; correct it, or `chat_template`.";
    }
  }

  void drop_taken_aliases() {
    for (auto& each : models_) {
      Model& model = each.second;
      std::erase_if(model.aliases, [&](const std::string& alias) {
        if (!models_.contains(alias)) return false;
        problem("The alias " + toml_quote(alias) + " of model " + toml_quote(model.name) +
                " is not used: a model has this name. Choose another alias.");
        return true;
      });
    }
  }

  const Config& config_;
  const ScanLimits limits_;
  std::map<std::string, const Model*> known_;  // by path, headers that could be read
  std::set<FileId> configured_files_;          // of sections with a path
  std::set<std::string> wanted_names_;         // of sections without one
  std::set<FileId> found_files_;
  std::map<std::string, Candidate> candidates_;  // by name
  std::map<std::string, Model> models_;          // by name
  std::map<std::string, std::uint64_t> stamps_;  // by name
  std::uint64_t files_stamp_ = 0;                // of the header that was read last
  PartsReader parts_;
  ScanResult result_;
};

}  // namespace

ScanResult scan(const Config& config, const Catalog* previous, ScanLimits limits) {
  return Scan(config, previous, limits).run();
}

std::uint64_t stat_stamp(const Config& config, const Catalog& catalog) {
  std::uint64_t stamp = directories_stamp(config);
  for (const auto& model : catalog.models()) {
    stamp = mix_stamp(stamp, model_stamp(*model));
  }
  return stamp;
}

std::uint32_t served_context(const ModelSettings& settings, std::uint32_t declared,
                             std::uint32_t auto_context_max) {
  if (settings.context) return *settings.context;
  const std::uint32_t wanted = declared == 0 ? kUndeclaredContext : declared;
  return std::max(std::min(wanted, auto_context_max), kMinContext);
}

}  // namespace berth::catalog
