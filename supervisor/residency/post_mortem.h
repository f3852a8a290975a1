#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/uuid.h"
#include "supervisor/residency/residency.h"

namespace berth::residency {

// Asks after the evidence that workers which were ready left behind when they died: whether the
// kernel's log says that it killed them for want of memory (L9), and the last lines of their logs.
// Core strand; lives as long as the residency, and its end drops what is still out. Nothing fails:
// what is not answered within kWait is not known.
class PostMortem {
 public:
  // Shorter than the shortest back-off, so that no load begins before it is known what stands
  // against it.
  static constexpr Duration kWait = std::chrono::milliseconds(900);

  struct Found {
    bool oom_proven = false;
    std::vector<std::string> log_tail;
  };
  struct Subject {
    std::string model;
    Uuid instance;
    pid_t pid = 0;
    bool ask_kernel = false;   // it died by a SIGKILL that was not ours
    bool oom_counted = false;  // its cgroup proves it already
  };

  // The environment outlives it.
  explicit PostMortem(const Environment& environment) : environment_(environment) {}
  PostMortem(const PostMortem&) = delete;
  PostMortem& operator=(const PostMortem&) = delete;
  ~PostMortem() = default;

  // `done` is called once, never from within this call. Once for each instance.
  void look_at(const Subject& subject, std::function<void(Found)> done);
  [[nodiscard]] bool idle() const { return open_.empty(); }

 private:
  struct Open {
    Found found;
    int answers_missing = 0;
    std::function<void(Found)> done;
    Timer timer;
  };

  void answered(const Uuid& instance);
  void end(const Uuid& instance);

  const Environment& environment_;
  std::map<Uuid, Open> open_;  // by instance
  // Answers may come after its end.
  const std::shared_ptr<PostMortem*> self_ = std::make_shared<PostMortem*>(this);
};

}  // namespace berth::residency
