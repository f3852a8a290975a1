#include "supervisor/model_check.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "common/durations.h"
#include "common/gguf/gguf.h"
#include "common/text.h"
#include "supervisor/catalog/file_stamp.h"
#include "supervisor/catalog/file_words.h"
#include "supervisor/catalog/model_parts.h"
#include "supervisor/core/failure.h"
#include "supervisor/core/redact.h"

namespace berth {
namespace {

constexpr std::size_t kReasonBytes = 512;
constexpr double kRetrySeconds = 2;  // a scan of the catalogue
constexpr std::size_t kMostAtOnce = 4;

using catalog::file_name_of;

std::string sentence(std::string text) {
  return catalog::without_stop(std::move(text)) + ".";
}

std::string not_loaded(const catalog::Model& model, const std::string& why) {
  return model.name + " was not loaded, and no other model unloaded for it: " + sentence(why);
}

// It stays so until somebody does something.
ModelCheckResult broken(const catalog::Model& model, const std::string& why) {
  FailureEvidence evidence;
  evidence.failure_class = core::failure_class_name(core::FailureClass::kPermanent);
  evidence.reason = core::carried_text(sentence(why), kReasonBytes);
  ErrorExtras extras;
  extras.failure = std::move(evidence);
  return {.status = fail(Error(Reason::kLoadFailed, not_loaded(model, why), std::move(extras)))};
}

// The next look may find it well.
ModelCheckResult changed(const catalog::Model& model, const std::string& why) {
  ErrorExtras extras;
  extras.retry_after_seconds = kRetrySeconds;
  return {.status = fail(Error(Reason::kLoadFailed, not_loaded(model, why), std::move(extras))),
          .files_changed = true};
}

// Empty: it can be.
std::string read_problem(const std::string& path) {
  if (::faccessat(AT_FDCWD, path.c_str(), F_OK, AT_EACCESS) != 0) {
    return file_name_of(path) + " is not there; put the file there, or correct the configuration";
  }
  if (::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) != 0) {
    return file_name_of(path) +
           " cannot be read; make it readable for the user that berthd runs as";
  }
  return {};
}

std::uint64_t stamp_of_all(const std::vector<std::string>& own,
                           const std::vector<std::string>& companions) {
  return catalog::mix_stamp(catalog::files_stamp(own), catalog::files_stamp(companions));
}

}  // namespace

ModelCheckResult check_model_files(const catalog::Model& model) {
  if (model.settings.kind == catalog::Kind::kCommand) return {};
  const std::vector<std::string> companions = catalog::companions_of(model.settings);
  const std::uint64_t before = stamp_of_all(model.shards, companions);
  for (const auto* const paths : {&model.shards, &companions}) {
    for (const std::string& path : *paths) {
      if (const std::string problem = read_problem(path); !problem.empty()) {
        return broken(model, problem);
      }
    }
  }
  if (model.file_stamp != 0 && catalog::files_stamp(model.shards) != model.file_stamp) {
    return changed(model, file_name_of(model.path) +
                              " was replaced or written to and has to be looked at again; repeat "
                              "the request in a moment");
  }
  if (model.parts_stamp != 0 && catalog::parts_stamp(model) != model.parts_stamp) {
    return changed(model,
                   "its draft model or an adapter was replaced or written to and has to be "
                   "looked at again; repeat the request in a moment");
  }
  std::vector<std::string> headers = model.settings.adapters;
  headers.push_back(model.path);
  if (!model.settings.draft.empty()) headers.push_back(model.settings.draft);
  for (const std::string& path : headers) {
    if (const auto read = gguf::read_model(path); !read) {
      return broken(model, read.error().message);
    }
  }
  if (!model.parts_problem.empty()) return broken(model, model.parts_problem);
  if (stamp_of_all(model.shards, companions) != before) {
    return changed(model, "its files are being written; repeat the request when they are whole");
  }
  return {};
}

ModelCheck::ModelCheck(Parts parts)
    : parts_(std::move(parts)),
      looks_(parts_.clock, parts_.run_alone, {.patience = kPatience, .most_at_once = kMostAtOnce}) {
}

void ModelCheck::check(const std::shared_ptr<const catalog::Model>& model,
                       std::function<void(Status)> done) {
  // What holds that look would hold another one.
  if (stopped_ || looks_.late(model->name)) {
    return parts_.clock.post([done = std::move(done)] { done({}); });
  }
  const std::uint64_t number = next_++;
  Asked& asked = asked_[number];
  asked.model = model;
  asked.done = std::move(done);
  asked.since = parts_.clock.now();
  asked.deadline = parts_.clock.sleep_for(kPatience, [this, number] { give_up(number); });
  look(model);
}

void ModelCheck::stop() {
  stopped_ = true;
  for (auto& [number, asked] : std::exchange(asked_, {})) {
    parts_.clock.post([done = std::move(asked.done)] { done({}); });
  }
}

void ModelCheck::look(const std::shared_ptr<const catalog::Model>& model) {
  looks_.begin(model->name, [this, model] {
    return [this, model, result = check_model_files(*model)] { take(model, result); };
  });
}

void ModelCheck::take(const std::shared_ptr<const catalog::Model>& model,
                      const ModelCheckResult& result) {
  if (result.files_changed && parts_.files_changed) parts_.files_changed();
  for (auto& [number, asked] : asked_) {
    if (asked.model == model) asked.looked = true;
  }
  if (!result.status || !parts_.knows || model->architecture.empty()) {
    answer(model, result.status);
  } else {
    parts_.knows(model->architecture, [this, model](bool known) {
      if (known) return answer(model, {});
      answer(model, broken(*model, "berth-worker's libllama does not know its architecture '" +
                                       model->architecture + "'; it takes a newer one")
                        .status);
    });
  }
  // Another one of that name may be asked about by now.
  const auto other = std::ranges::find_if(asked_, [&](const auto& one) {
    return one.second.model->name == model->name && !one.second.looked;
  });
  if (other != asked_.end()) look(other->second.model);
}

void ModelCheck::answer(const std::shared_ptr<const catalog::Model>& model, const Status& status) {
  std::vector<std::function<void(Status)>> all;
  for (auto& [number, asked] : asked_) {
    if (asked.model == model) all.push_back(std::move(asked.done));
  }
  std::erase_if(asked_, [&](const auto& one) { return one.second.model == model; });
  for (const auto& done : all) done(status);
}

void ModelCheck::give_up(std::uint64_t number) {
  const auto node = asked_.extract(number);  // with the timer that calls
  const Asked& asked = node.mapped();
  parts_.events.emit_typed(
      events::CheckLate{.model = asked.model->name,
                        .waited_ms = whole_milliseconds(parts_.clock.now() - asked.since)});
  asked.done({});
}

}  // namespace berth
