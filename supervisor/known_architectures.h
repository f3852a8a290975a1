#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/worker_question.h"

namespace berth {

// Whether the libllama of berth-worker has a model's architecture (L25): asked of that program, as
// berthd holds no libllama, and it may be another one than berthd was built with. What it has is
// asked once; what it has not, anew, since it may be replaced. Core strand only; lives as long as
// the program.
class KnownArchitectures {
 public:
  explicit KnownArchitectures(WorkerQuestion::Parts parts) : parts_(std::move(parts)) {}
  KnownArchitectures(const KnownArchitectures&) = delete;
  KnownArchitectures& operator=(const KnownArchitectures&) = delete;
  ~KnownArchitectures() = default;

  // `done(false)`: it said that it has it not. Everything else is true, as where it does not
  // answer. In a bounded time, and maybe from within the call.
  void ask(const std::string& architecture, std::function<void(bool)> done);

 private:
  struct Asking {
    std::shared_ptr<WorkerQuestion> question;
    std::vector<std::function<void(bool)>> done;
  };

  void answered(const std::string& architecture, const Result<std::string>& text);

  const WorkerQuestion::Parts parts_;
  std::set<std::string> known_;
  std::map<std::string, Asking> asking_;  // by architecture
};

}  // namespace berth
