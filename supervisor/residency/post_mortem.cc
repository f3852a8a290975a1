#include "supervisor/residency/post_mortem.h"

#include <memory>
#include <utility>

namespace berth::residency {

void PostMortem::look_at(const Subject& subject, std::function<void(Found)> done) {
  const Uuid id = subject.instance;
  Open& open = open_[id];
  open.done = std::move(done);
  open.found.oom_proven = subject.oom_counted;
  open.timer = environment_.clock.sleep_for(kWait, [this, id] { end(id); });
  const std::weak_ptr<PostMortem*> weak = self_;
  const bool ask_kernel = subject.ask_kernel && environment_.oom_killed;
  open.answers_missing = ask_kernel ? 2 : 1;
  environment_.log_tail(subject.model, id, [weak, id](std::vector<std::string> lines) {
    const auto self = weak.lock();
    if (!self) return;
    const auto at = (*self)->open_.find(id);
    if (at == (*self)->open_.end()) return;
    at->second.found.log_tail = std::move(lines);
    (*self)->answered(id);
  });
  if (!ask_kernel) return;
  environment_.oom_killed(subject.pid, [weak, id](bool proven) {
    const auto self = weak.lock();
    if (!self) return;
    const auto at = (*self)->open_.find(id);
    if (at == (*self)->open_.end()) return;
    at->second.found.oom_proven = proven;
    (*self)->answered(id);
  });
}

void PostMortem::answered(const Uuid& instance) {
  if (--open_.at(instance).answers_missing == 0) end(instance);
}

void PostMortem::end(const Uuid& instance) {
  auto node = open_.extract(instance);
  if (node.empty()) return;
  node.mapped().timer.reset();
  node.mapped().done(std::move(node.mapped().found));
}

}  // namespace berth::residency
