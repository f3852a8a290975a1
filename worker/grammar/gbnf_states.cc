#include "worker/grammar/gbnf_states.h"

#include <algorithm>
#include <utility>

namespace berth::worker {
namespace {

using Kind = GbnfProgram::Kind;

constexpr std::uint32_t kTables = 128;  // kinds of characters that have a place in a state's table
constexpr std::size_t kMostTables = std::size_t{1} << 21U;  // their places, of 4 bytes
constexpr std::size_t kMostOthers = std::size_t{1} << 17U;
constexpr GbnfStates::State kUnknown = 0xFFFFFFFD;
constexpr GbnfStates::State kNone = 0xFFFFFFFF;
constexpr GbnfProgram::Position kComplete = 0xFFFFFFFF;  // behind the end of the root
constexpr GbnfStates::State kEnd = 0;                    // the set with that only
constexpr std::uint64_t kTokenKey = std::uint64_t{1} << 63U;

std::uint64_t mixed(std::uint64_t value) {
  value *= 0x9E3779B97F4A7C15U;  // 2^64 / golden ratio (Knuth, multiplicative hashing)
  return value ^ (value >> 29U);
}

std::uint64_t key_of(std::uint32_t high, std::uint32_t low) {
  return (std::uint64_t{high} << 32U) | low;
}

}  // namespace

// --- frames that were seen

void GbnfStates::Seen::clear() {
  count_ = 0;
  if (++round_ != 0) return;
  std::fill(slots_.begin(), slots_.end(), Slot{});
  round_ = 1;
}

bool GbnfStates::Seen::add(Frame frame) {
  if (2 * (count_ + 1) > slots_.size()) grow();
  const auto key = key_of(frame.position, frame.rest);
  auto at = mixed(key) & (slots_.size() - 1);
  for (; slots_[at].round == round_; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].key == key) return false;
  }
  slots_[at] = {key, round_};
  ++count_;
  return true;
}

void GbnfStates::Seen::grow() {
  const auto old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
  for (const auto& slot : old) {
    if (slot.round != round_) continue;
    auto at = mixed(slot.key) & (slots_.size() - 1);
    while (slots_[at].round == round_) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = slot;
  }
}

// --- sets

GbnfStates::GbnfStates(std::shared_ptr<const GbnfProgram> program)
    : program_(std::move(program)),
      table_size_(std::min(program_->kinds(), kTables)),
      begins_{0},
      slots_(256, kNone) {
  const Frame complete{kComplete, kEnd};
  number_of({&complete, 1});
}

GbnfStates::State GbnfStates::number_of(std::span<const Frame> set) {
  std::uint64_t hash = set.size();
  for (const auto& frame : set) hash = mixed(hash ^ key_of(frame.position, frame.rest));
  auto at = hash & (slots_.size() - 1);
  for (; slots_[at] != kNone; at = (at + 1) & (slots_.size() - 1)) {
    const auto there = frames(slots_[at]);
    if (std::equal(there.begin(), there.end(), set.begin(), set.end())) return slots_[at];
  }
  const auto state = static_cast<State>(begins_.size() - 1);
  frames_.insert(frames_.end(), set.begin(), set.end());
  begins_.push_back(static_cast<std::uint32_t>(frames_.size()));
  table_of_.push_back(kNone);
  slots_[at] = state;
  if (2 * begins_.size() > slots_.size()) grow_index();
  return state;
}

void GbnfStates::index(State state) {
  const auto set = frames(state);
  std::uint64_t hash = set.size();
  for (const auto& frame : set) hash = mixed(hash ^ key_of(frame.position, frame.rest));
  auto at = hash & (slots_.size() - 1);
  while (slots_[at] != kNone) at = (at + 1) & (slots_.size() - 1);
  slots_[at] = state;
}

void GbnfStates::grow_index() {
  slots_.assign(2 * slots_.size(), kNone);
  for (State state = 0; state + 1 < begins_.size(); ++state) index(state);
}

GbnfStates::State GbnfStates::keep_only(State state) {
  const bool is_small = frames_.size() <= kMostFrames / 2 && tables_.size() < kMostTables &&
                        others_.size() <= kMostOthers;
  if (is_small || state >= kUnknown) return state;
  std::vector<bool> used(begins_.size());
  used[kEnd] = used[state] = true;
  for (State set = state; set > kEnd; --set) {
    if (!used[set]) continue;
    for (const auto& frame : frames(set)) used[frame.rest] = true;
  }
  const auto old_frames = std::exchange(frames_, {});
  const auto old_begins = std::exchange(begins_, {0});
  slots_.assign(256, kNone);
  table_of_.clear();
  tables_.clear();
  others_.clear();
  std::vector<State> numbers(old_begins.size());
  for (State set = kEnd; set <= state; ++set) {
    if (!used[set]) continue;
    joined_.assign(old_frames.begin() + old_begins[set], old_frames.begin() + old_begins[set + 1]);
    for (auto& frame : joined_) frame.rest = numbers[frame.rest];
    numbers[set] = number_of(joined_);
  }
  return frames_.size() > kMostFrames / 2 ? kTooMany : numbers[state];
}

// --- steps

GbnfStates::State GbnfStates::start() {
  waiting_.clear();
  for (const auto begin : program_->alternatives(program_->root())) {
    waiting_.push_back({begin, kEnd});
  }
  return settle();
}

GbnfStates::State& GbnfStates::known(State state, std::uint32_t kind) {
  const bool has_no_table = table_of_[state] == kNone && tables_.size() >= kMostTables;
  if (kind >= table_size_ || has_no_table) {
    return others_.try_emplace(key_of(state, kind), kUnknown).first->second;
  }
  if (table_of_[state] == kNone) {
    table_of_[state] = static_cast<std::uint32_t>(tables_.size() / table_size_);
    tables_.resize(tables_.size() + table_size_, kUnknown);
  }
  return tables_[std::size_t{table_of_[state]} * table_size_ + kind];
}

GbnfStates::State GbnfStates::after_character(State state, std::uint32_t code_point) {
  if (state >= kUnknown) return state;
  const auto kind = program_->kind_of(code_point);
  if (const auto next = known(state, kind); next != kUnknown) return next;
  if (is_full()) return kTooMany;
  const auto next = step(state, [this, code_point](const GbnfProgram::Element& element) {
    return (element.kind == Kind::kCharacter || element.kind == Kind::kClass) &&
           program_->takes(element, code_point);
  });
  // Where there was no more time, there may be for the next token.
  if (next != kTooMany || !is_full()) known(state, kind) = next;
  return next;
}

GbnfStates::State GbnfStates::after_token(State state, std::uint32_t token) {
  if (state >= kUnknown) return state;
  if (!program_->has_tokens()) return kRefused;
  const auto key = kTokenKey | key_of(state, program_->kind_of_token(token));
  if (const auto found = others_.find(key); found != others_.end()) return found->second;
  if (is_full()) return kTooMany;
  const auto next = step(state, [this, token](const GbnfProgram::Element& element) {
    return element.kind == Kind::kToken && program_->takes_token(element, token);
  });
  if (next != kTooMany || !is_full()) others_[key] = next;
  return next;
}

GbnfStates::State GbnfStates::either(State first, State second) {
  if (first == kRefused || second == kTooMany) return second;
  if (second == kRefused || first == kTooMany || first == second) return first;
  if (is_full()) return kTooMany;
  reached_.assign(frames(first).begin(), frames(first).end());
  reached_.insert(reached_.end(), frames(second).begin(), frames(second).end());
  work_ += reached_.size();
  step_end_ = work_ + kStepWork;
  return join_reached();
}

template <class Takes>
GbnfStates::State GbnfStates::step(State state, const Takes& takes) {
  constexpr std::size_t kCheap = 8;  // frames looked at here cost as much as one followed
  waiting_.clear();
  for (const auto& frame : frames(state)) {
    if (frame.position == kComplete || !takes(program_->at(frame.position))) continue;
    waiting_.push_back({frame.position + 1, frame.rest});
  }
  work_ += 1 + frames(state).size() / kCheap;
  return settle();
}

GbnfStates::State GbnfStates::settle() {
  reached_.clear();
  seen_.clear();
  step_end_ = work_ + kStepWork;
  while (!waiting_.empty()) {
    const auto frame = waiting_.back();
    waiting_.pop_back();
    if (!seen_.add(frame)) continue;
    if (++work_ > step_end_ || is_full()) return kTooMany;
    if (!expand(frame)) reached_.push_back(frame);
  }
  return reached_.empty() ? kRefused : join_reached();
}

// False: the frame waits for a character or token, or is the end.
bool GbnfStates::expand(Frame frame) {
  if (frame.position == kComplete) return false;
  const auto& element = program_->at(frame.position);
  if (element.kind == Kind::kEnd) {
    const auto returns = frames(frame.rest);
    waiting_.insert(waiting_.end(), returns.begin(), returns.end());
    return true;
  }
  if (element.kind != Kind::kReference) return false;
  // What ends with the reference needs no place to return to: lists do not nest so.
  auto rest = frame.rest;
  if (program_->at(frame.position + 1).kind != Kind::kEnd) {
    const Frame back{frame.position + 1, frame.rest};
    rest = number_of({&back, 1});
  }
  for (const auto begin : program_->alternatives(element.value)) waiting_.push_back({begin, rest});
  return true;
}

GbnfStates::State GbnfStates::join_reached() {
  std::sort(reached_.begin(), reached_.end());
  joined_.clear();
  for (std::size_t at = 0; at < reached_.size();) {
    auto end = at + 1;
    while (end < reached_.size() && reached_[end].position == reached_[at].position) ++end;
    auto frame = reached_[at];
    if (reached_[at].rest != reached_[end - 1].rest) {
      returns_.clear();
      for (; at < end; ++at) {
        const auto more = frames(reached_[at].rest);
        returns_.insert(returns_.end(), more.begin(), more.end());
        work_ += more.size();
        if (work_ > step_end_ + kStepWork) return kTooMany;
      }
      std::sort(returns_.begin(), returns_.end());
      returns_.erase(std::unique(returns_.begin(), returns_.end()), returns_.end());
      if (returns_.size() > kMostReturns) return kTooMany;
      frame.rest = number_of(returns_);
    }
    joined_.push_back(frame);
    at = end;
  }
  return number_of(joined_);
}

bool GbnfStates::is_complete(State state) const {
  if (state >= kUnknown) return false;
  return frames(state).back().position == kComplete;  // the highest
}

bool GbnfStates::takes_some(State state, std::uint32_t first, std::uint32_t last) {
  if (state >= kUnknown) return state == kTooMany;
  const auto set = frames(state);
  work_ += set.size();
  return std::any_of(set.begin(), set.end(), [&](const Frame& frame) {
    return frame.position != kComplete &&
           program_->takes_some(program_->at(frame.position), first, last);
  });
}

}  // namespace berth::worker
