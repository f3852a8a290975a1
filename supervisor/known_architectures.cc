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
      [this, architecture](const Result<std::string>& text) { answered(architecture, text); });
  asking.question->begin();
}

void KnownArchitectures::answered(const std::string& architecture,
                                  const Result<std::string>& text) {
  const auto said = [&](const char* what) {
    return text && text->find("architecture " + architecture + what) != std::string::npos;
  };
  if (said(": known\n") && known_.size() < kMostKnown) known_.insert(architecture);
  const auto asked = asking_.find(architecture);
  const std::vector<std::function<void(bool)>> all = std::exchange(asked->second.done, {});
  if (asked->second.question->over()) asking_.erase(asked);
  for (const auto& done : all) done(!said(": unknown\n"));
}

}  // namespace berth
