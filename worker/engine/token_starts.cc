#include "worker/engine/token_starts.h"

#include <limits>
#include <string>

#include "llama.h"

namespace berth::worker {
namespace {

constexpr std::size_t kAscii = 128;
constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

}  // namespace

std::span<const TokenId> TokenStarts::characters() const {
  std::call_once(once_, [this] { make(); });
  return characters_;
}

std::span<const TokenId> TokenStarts::beginning_with(std::size_t index) const {
  std::call_once(once_, [this] { make(); });
  return std::span(tokens_).subspan(starts_[index], starts_[index + 1] - starts_[index]);
}

std::span<const TokenId> TokenStarts::others() const {
  std::call_once(once_, [this] { make(); });
  return std::span(tokens_).subspan(starts_[characters_.size()]);
}

void TokenStarts::make() const {
  const auto count = static_cast<TokenId>(vocabulary_.size());
  std::vector<unsigned char> first(static_cast<std::size_t>(count));  // 0: it counts as another
  std::array<std::size_t, kAscii> group_of{};
  group_of.fill(kNone);
  std::string text;
  for (TokenId token = 0; token < count; ++token) {
    text.clear();
    vocabulary_.append_piece(token, text, true);
    if (text.empty() || vocabulary_.ends_generation(token)) continue;
    const auto byte = static_cast<unsigned char>(text.front());
    if (byte == 0 || byte >= kAscii) continue;
    first[static_cast<std::size_t>(token)] = byte;
    if (text.size() == 1 && group_of[byte] == kNone) {
      group_of[byte] = characters_.size();
      characters_.push_back(token);
    }
  }
  std::vector<std::vector<TokenId>> groups(characters_.size() + 1);
  for (TokenId token = 0; token < count; ++token) {
    const auto byte = first[static_cast<std::size_t>(token)];
    const auto group = byte == 0 ? kNone : group_of[byte];
    groups[group == kNone ? characters_.size() : group].push_back(token);
  }
  tokens_.reserve(static_cast<std::size_t>(count));
  for (const auto& group : groups) {
    starts_.push_back(tokens_.size());
    tokens_.insert(tokens_.end(), group.begin(), group.end());
  }
  starts_.push_back(tokens_.size());
}

}  // namespace berth::worker
