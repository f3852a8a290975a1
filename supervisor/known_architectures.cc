#include "supervisor/known_architectures.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace berth {
namespace {

constexpr std::size_t kMostKnown = 1000;

// It becomes an argument, and comes from a file that anybody may have written.
bool is_plain(std::string_view name) {
  constexpr std::size_t kLongest = 64;
  return !name.empty() && name.size() <= kLongest && std::ranges::all_of(name, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  });
}

}  // namespace

void KnownArchitectures::ask(const std::string& architecture, std::function<void(bool)> done) {
  if (!is_plain(architecture) || known_.contains(architecture)) return done(true);
  Asking& asking = asking_[architecture];
  const bool runs = asking.question && !asking.question->over();
  if (runs && asking.done.empty()) return done(true);  // it was late, and does not go
  asking.done.push_back(std::move(done));
  if (runs) return;
  asking.question = std::make_shared<WorkerQuestion>(
      parts_, std::vector<std::string>{"--knows-architecture=" + architecture},
      [this, architecture](const Result<std::string>& text) {
        const bool unknown =
            text && text->find("architecture " + architecture + ": unknown\n") != std::string::npos;
        const bool known =
            text && text->find("architecture " + architecture + ": known\n") != std::string::npos;
        if (known && known_.size() < kMostKnown) known_.insert(architecture);
        answered(architecture, !unknown);
      });
  asking.question->begin();
}

void KnownArchitectures::answered(const std::string& architecture, bool known) {
  const std::vector<std::function<void(bool)>> all =
      std::exchange(asking_.at(architecture).done, {});
  for (const auto& done : all) done(known);
  // Its own code returns from here.
  parts_.clock.post([this, architecture] {
    const auto asked = asking_.find(architecture);
    if (asked != asking_.end() && asked->second.question->over()) asking_.erase(asked);
  });
}

}  // namespace berth
