#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/clock.h"
#include "common/event.h"
#include "common/result.h"
#include "supervisor/catalog/model.h"
#include "supervisor/patient_looks.h"
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

// Does so where a file system that hangs holds nobody else up. Core strand only; lives as long as
// the program.
class ModelCheck {
 public:
  // After so long the answer is that nothing is wrong: the load is tried, and its own watches (L8)
  // find out.
  static constexpr Duration kPatience = std::chrono::seconds(10);

  struct Parts {
    Clock& clock;
    EventSink& events;
    process::RunBlocking run_alone;         // on a thread of its own, which may never end
    std::function<void()> files_changed{};  // the catalogue has to look again; may be empty
    // As KnownArchitectures::ask. Empty: all are known.
    std::function<void(const std::string& architecture, std::function<void(bool)> done)> knows{};
  };

  explicit ModelCheck(Parts parts);
  ModelCheck(const ModelCheck&) = delete;
  ModelCheck& operator=(const ModelCheck&) = delete;
  ~ModelCheck() = default;

  // As MemoryAccess::check. Everybody who asks is answered once, never from within. One model is
  // looked at once at a time: one look answers all who asked about the model that it looked at.
  void check(const std::shared_ptr<const catalog::Model>& model, std::function<void(Status)> done);
  // The program ends: who asked, and who asks from now on, is told that nothing is wrong.
  void stop();

 private:
  struct Asked {
    std::shared_ptr<const catalog::Model> model;
    std::function<void(Status)> done;
    SteadyTime since{};
    Timer deadline;
    bool looked = false;  // its files were; the rest of the answer is on its way
  };

  void look(const std::shared_ptr<const catalog::Model>& model);
  void take(const std::shared_ptr<const catalog::Model>& model, const ModelCheckResult& result);
  void answer(const std::shared_ptr<const catalog::Model>& model, const Status& status);
  void give_up(std::uint64_t number);

  Parts parts_;
  PatientLooks looks_;
  std::map<std::uint64_t, Asked> asked_;  // the oldest first
  std::uint64_t next_ = 0;
  bool stopped_ = false;
};

}  // namespace berth
