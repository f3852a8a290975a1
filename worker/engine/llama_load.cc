#include "worker/engine/llama_load.h"

#include <sys/stat.h>

#include <array>
#include <charconv>
#include <climits>
#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "worker/engine/backends.h"
#include "worker/engine/build_id.h"
#include "worker/engine/llama_devices.h"
#include "worker/engine/llama_engine.h"
#include "worker/engine/llama_log.h"
#include "worker/engine/load_log.h"

namespace berth::worker {
namespace {

using Failed = tl::unexpected<LoadFailure>;

Failed failed(std::string failure_class, std::string reason) {
  return Failed(LoadFailure{std::move(failure_class), std::move(reason)});
}

Failed cancelled_load() {
  return Failed(LoadFailure{"", "cancelled", true});
}

Failed no_use_for_draft() {
  return failed("permanent", "a model that embeds has no use for a draft model");
}

// Bytes of the model's files. A split model is named by its first file; the others are found by
// their number.
std::uint64_t model_file_bytes(const std::string& path) {
  const auto size = [](const std::string& file) -> std::uint64_t {
    struct stat status {};
    return ::stat(file.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
  };
  if (path.empty()) return 0;
  // "-00001-of-00003.gguf"
  constexpr std::size_t kTail = 20;
  if (path.size() <= kTail || path.compare(path.size() - kTail, 10, "-00001-of-") != 0) {
    return size(path);
  }
  int count = 0;
  std::from_chars(path.data() + path.size() - 10, path.data() + path.size() - 5, count);
  const auto prefix = path.substr(0, path.size() - kTail);
  std::uint64_t bytes = 0;
  for (int part = 0; part < count; ++part) {
    std::array<char, PATH_MAX> name{};
    if (llama_split_path(name.data(), name.size(), prefix.c_str(), part, count) > 0) {
      bytes += size(name.data());
    }
  }
  return bytes;
}

// Weights of all models of one load, as libllama's progress callback tells of them.
struct WeightsProgress {
  LoadObserver* observer;
  std::uint64_t total = 0;    // bytes of all
  std::uint64_t before = 0;   // of those that are loaded
  std::uint64_t present = 0;  // of the one that is being loaded
  bool cancelled = false;

  bool tell(float fraction) {
    if (observer->cancelled()) {
      cancelled = true;
      return false;
    }
    const auto done = static_cast<double>(before) + static_cast<double>(present) * fraction;
    const double share = total == 0 ? fraction : done / static_cast<double>(total);
    observer->on_progress(LoadProgress{"weights", static_cast<float>(share),
                                       static_cast<std::uint64_t>(done), total});
    return true;
  }
};

// One load. Lives on the context thread for as long as it takes.
class Loader {
 public:
  Loader(const EngineSettings& settings, LoadObserver& observer, LoadLog& log)
      : settings_(settings), observer_(observer), log_(log), progress_{&observer} {}

  tl::expected<std::unique_ptr<Engine>, LoadFailure> run();

 private:
  tl::expected<ModelPointer, LoadFailure> load_model(const std::string& path, const LoadLog& log);
  // Null: no draft model is wanted.
  tl::expected<ModelPointer, LoadFailure> load_draft(const llama_model* model);
  // The second half, from a known vocabulary on.
  tl::expected<std::unique_ptr<Engine>, LoadFailure> complete(LlamaEngine* engine,
                                                              LlamaAdapters adapters,
                                                              ModelPointer draft);

  const EngineSettings& settings_;
  LoadObserver& observer_;
  LoadLog& log_;
  // libllama names buffers alike for both models, so each has a log of its own.
  LoadLog draft_log_{&is_device};
  WeightsProgress progress_;
  Placement placement_;
};

tl::expected<ModelPointer, LoadFailure> Loader::load_model(const std::string& path,
                                                           const LoadLog& log) {
  progress_.before += progress_.present;
  progress_.present = model_file_bytes(path);
  auto parameters = llama_model_default_params();
  parameters.load_mode = LLAMA_LOAD_MODE_MMAP;
  parameters.devices = placement_.devices.data();
  parameters.n_gpu_layers = placement_.layers;
  parameters.split_mode = LLAMA_SPLIT_MODE_LAYER;
  if (!placement_.split.empty()) parameters.tensor_split = placement_.split.data();
  parameters.progress_callback = [](float fraction, void* data) {
    return static_cast<WeightsProgress*>(data)->tell(fraction);
  };
  parameters.progress_callback_user_data = &progress_;
  if (!progress_.tell(0)) return cancelled_load();
  ModelPointer model(llama_model_load_from_file(path.c_str(), parameters));
  if (progress_.cancelled || observer_.cancelled()) return cancelled_load();
  if (model) return model;
  if (auto other = not_a_model(path)) return Failed(*other);
  return Failed(log.failure(path, "libllama did not say why the model cannot be loaded"));
}

tl::expected<ModelPointer, LoadFailure> Loader::load_draft(const llama_model* model) {
  if (settings_.draft_path.empty()) return ModelPointer();
  if (has_state(model)) {
    return failed("permanent",
                  "a draft model cannot help this model, whose memory (recurrent or hybrid) cannot "
                  "take back a wrong guess");
  }
  const LogObservation observation(draft_log_);
  // The draft model is small: all of it goes where the model goes.
  if (settings_.device_layers && placement_.layers > 0) placement_.layers = -1;
  auto draft = load_model(settings_.draft_path, draft_log_);
  std::string refusal;
  if (!draft) {
    if (draft.error().cancelled) return draft;
    return failed(draft.error().failure_class, "draft model: " + draft.error().reason);
  }
  const auto kind = kind_of(draft->get(), EngineSettings{});
  if (!kind) {
    refusal = kind.error().reason;
  } else if (kind->purpose != Purpose::kGenerate) {
    refusal = "it only embeds";
  } else if (has_state(draft->get())) {
    refusal = "its memory (recurrent or hybrid) cannot take back a guess";
  } else if (auto difference = vocabulary_difference(llama_model_get_vocab(model),
                                                     llama_model_get_vocab(draft->get()))) {
    refusal = "it does not fit the model: " + *difference;
  }
  if (!refusal.empty()) return failed("permanent", "draft model: " + refusal);
  return draft;
}

tl::expected<std::unique_ptr<Engine>, LoadFailure> Loader::run() {
  if (settings_.sequences > llama_max_parallel_sequences()) {
    return failed("permanent",
                  "libllama computes at most " + std::to_string(llama_max_parallel_sequences()) +
                      " sequences at once, not " + std::to_string(settings_.sequences));
  }
  observer_.on_progress(LoadProgress{"starting"});
  if (const auto loaded = load_cpu_backend(); !loaded) {
    return failed("unclassified", loaded.error().message);
  }
  auto placement = place(settings_);
  if (!placement) return Failed(placement.error());
  placement_ = std::move(*placement);
  llama_backend_init();

  progress_.total = model_file_bytes(settings_.model_path) + model_file_bytes(settings_.draft_path);
  auto model = load_model(settings_.model_path, log_);
  if (!model) return Failed(model.error());
  const auto kind = kind_of(model->get(), settings_);
  if (!kind) return Failed(kind.error());
  if (kind->purpose == Purpose::kEmbed && !settings_.draft_path.empty()) {
    return no_use_for_draft();
  }
  auto adapters = LlamaAdapters::load(model->get(), settings_, log_);
  if (!adapters) return Failed(adapters.error());
  auto draft = load_draft(model->get());
  if (!draft) return Failed(draft.error());

  // From on_vocabulary() on, another thread reads this engine for as long as the process lives. So
  // no failure below, be it an exception, may destroy it: it is given up on purpose (the process
  // ends after a failed load), and owned again only once it is complete.
  return complete(std::make_unique<LlamaEngine>(std::move(*model), *kind).release(),
                  std::move(*adapters), std::move(*draft));
}

tl::expected<std::unique_ptr<Engine>, LoadFailure> Loader::complete(LlamaEngine* engine,
                                                                    LlamaAdapters adapters,
                                                                    ModelPointer draft) {
  observer_.on_vocabulary(*engine);
  observer_.on_progress(LoadProgress{"context"});
  if (!engine->make_context(settings_)) {
    return Failed(
        log_.failure(settings_.model_path, "libllama did not say why there is no context"));
  }
  // Only now it shows of some models that they can only embed.
  if (draft && engine->facts().purpose == Purpose::kEmbed) return no_use_for_draft();
  if (!engine->put_on(std::move(adapters))) {
    return Failed(log_.failure(settings_.model_path,
                               "libllama did not say why the adapters cannot be put on"));
  }
  if (observer_.cancelled()) return cancelled_load();
  auto memory = log_.memory();
  if (draft) {
    const LogObservation observation(draft_log_);
    if (!engine->make_drafter(std::move(draft), settings_)) {
      auto failure =
          draft_log_.failure(settings_.draft_path, "libllama did not say why there is no context");
      return failed(failure.failure_class, "draft model: " + failure.reason);
    }
    add_memory(memory, draft_log_.memory());
  }
  if (observer_.cancelled()) return cancelled_load();
  engine->set_memory(std::move(memory), settings_);
  engine->set_layers(log_.device_layers(), log_.layers());
  return std::unique_ptr<Engine>(engine);
}

}  // namespace

tl::expected<std::unique_ptr<Engine>, LoadFailure> load_llama_engine(const EngineSettings& settings,
                                                                     LoadObserver& observer) {
  LlamaLog::instance().install();
  LoadLog log(&is_device);
  const LogObservation observation(log);
  try {
    return Loader(settings, observer, log).run();
  } catch (const std::bad_alloc&) {
    return failed("resource", "std::bad_alloc: no memory for the load");
  } catch (const std::exception& problem) {
    log.add_line(problem.what(), true);  // drivers throw what they could not allocate
    return Failed(log.failure(settings.model_path, problem.what()));
  }
}

std::string llama_build_id() {
  return std::string("llama.cpp ") + llama_version() + ", ggml " + ggml_version() + " (" +
         loaded_build_ids("berth-worker") + ")";
}

}  // namespace berth::worker
