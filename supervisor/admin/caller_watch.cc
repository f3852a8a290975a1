#include "supervisor/admin/caller_watch.h"

#include <vector>

namespace berth::admin {

CallerWatch::Token::~Token() {
  forget();
}

bool CallerWatch::Token::forget() {
  Watched gone;  // what it holds goes after the lock
  const std::lock_guard lock(shared_->mutex);
  auto node = shared_->watched.extract(id_);
  if (!node) return false;
  gone = std::move(node.mapped());
  return true;
}

std::unique_ptr<CallerWatch::Token> CallerWatch::watch(core::Caller caller, OnRefused on_refused) {
  std::unique_ptr<Token> token;
  {
    const std::lock_guard lock(shared_->mutex);
    const std::uint64_t id = shared_->next++;
    shared_->watched.emplace(id, Watched{caller, on_refused});
    token = std::make_unique<Token>(shared_, id);
  }
  // He may have changed since he was let in.
  if (const Status still = ask_ ? ask_(caller) : Status(); !still && token->forget()) {
    on_refused(still.error());
  }
  return token;
}

void CallerWatch::changed() {
  if (!ask_) return;
  std::vector<std::pair<OnRefused, Error>> refused;
  {
    const std::lock_guard lock(shared_->mutex);
    for (auto at = shared_->watched.begin(); at != shared_->watched.end();) {
      const Status still = ask_(at->second.caller);
      if (still) {
        ++at;
        continue;
      }
      refused.emplace_back(std::move(at->second.on_refused), still.error());
      at = shared_->watched.erase(at);
    }
  }
  for (const auto& [tell, error] : refused) tell(error);
}

}  // namespace berth::admin
