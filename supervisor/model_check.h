#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/catalog/model.h"
#include "supervisor/process/async.h"

namespace berth {

// What a model's files tell of its next load.
struct ModelCheckResult {
  Status status{};
  bool files_changed = false;  // the catalogue knows other ones: it has to look again
};

// Whether a load of the model can succeed, as far as its files tell (L25): all of them are there,
// can be read, are those that the catalogue knows, and are not being written; their headers make
// sense; what it takes of the memory is known. A command's program is looked at when it is
// launched. Blocks on the file system, for as long as reading headers takes. Error: kLoadFailed,
// with what is wrong and what to do.
ModelCheckResult check_model_files(const catalog::Model& model);

// Does so on the pool. Core strand only; lives as long as the program.
class ModelCheck {
 public:
  struct Parts {
    Clock& clock;
    process::RunBlocking run_blocking;
    std::function<void()> files_changed{};  // the catalogue has to look again; may be empty
  };

  explicit ModelCheck(Parts parts) : parts_(std::move(parts)) {}
  ModelCheck(const ModelCheck&) = delete;
  ModelCheck& operator=(const ModelCheck&) = delete;
  ~ModelCheck() = default;

  // As MemoryAccess::check.
  void check(std::shared_ptr<const catalog::Model> model, std::function<void(Status)> done);

 private:
  Parts parts_;
};

}  // namespace berth
