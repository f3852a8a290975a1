#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "worker/grammar/gbnf_program.h"

namespace berth::worker {

// Where a text can stand in a grammar, all ways to read it together, and where each character leads
// from there. One generation, one thread. Never fails; what is too large is kTooMany.
//
// A state is a set of frames; a frame is a position in the grammar and the set of frames that it
// returns to at the end of its rule. Ways that stand at the same position are one frame, so a
// grammar like `r ::= "(" r "+" | "(" r "-" | "x"`, whose readings double with every parenthesis,
// has as many frames at any depth (the graph-structured stack of Tomita's parsing, as a value).
// Equal sets have one number, so that where a state leads is found once and looked up from then on:
// a deterministic automaton that is made as it is used.
//
// What can still grow are sets to return to: `r ::= "(" r | "(" r ")" | "x"` does not know how many
// parentheses are open. They are bounded, and so are time and memory between two begin_token().
class GbnfStates {
 public:
  using State = std::uint32_t;
  static constexpr State kRefused = 0xFFFFFFFF;  // the grammar has no such text
  static constexpr State kTooMany = 0xFFFFFFFE;  // a bound is passed: not known

  static constexpr std::size_t kMostReturns = 256;                   // that one position may have
  static constexpr std::size_t kStepWork = std::size_t{1} << 16U;    // frames looked at
  static constexpr std::size_t kTokenWork = std::size_t{1} << 19U;   // ditto, between begin_token()
  static constexpr std::size_t kMostFrames = std::size_t{1} << 20U;  // of 8 bytes

  explicit GbnfStates(std::shared_ptr<const GbnfProgram> program);

  [[nodiscard]] const GbnfProgram& program() const { return *program_; }

  // What follows may take kTokenWork again.
  void begin_token() { work_ = 0; }
  // Forgets all other states where they have become many; returns the number of `state` from now
  // on, or kTooMany where it needs too much itself.
  State keep_only(State state);

  // Before the first character.
  State start();
  State after_character(State state, std::uint32_t code_point);
  // By elements that name tokens.
  State after_token(State state, std::uint32_t token);
  // What one of them allows.
  State either(State first, State second);

  // Whether the text may end here.
  [[nodiscard]] bool is_complete(State state) const;
  // Whether one of the code points from `first` to `last` may follow.
  [[nodiscard]] bool takes_some(State state, std::uint32_t first, std::uint32_t last);

 private:
  struct Frame {
    GbnfProgram::Position position = 0;
    State rest = 0;

    friend bool operator==(const Frame&, const Frame&) = default;
    // NOLINTNEXTLINE(modernize-use-nullptr): of the comparison that the compiler writes
    friend auto operator<=>(const Frame&, const Frame&) = default;
  };
  // Frames that a step has come by already.
  class Seen {
   public:
    void clear();
    bool add(Frame frame);  // false: it was there

   private:
    struct Slot {
      std::uint64_t key = 0;
      std::uint32_t round = 0;
    };
    void grow();
    std::vector<Slot> slots_ = std::vector<Slot>(256);
    std::uint32_t round_ = 1;
    std::size_t count_ = 0;
  };

  [[nodiscard]] std::span<const Frame> frames(State state) const {
    return std::span(frames_).subspan(begins_[state], begins_[state + 1] - begins_[state]);
  }
  // The number of a set, which is in order and not part of frames_.
  State number_of(std::span<const Frame> set);
  void index(State state);
  void grow_index();

  template <class Takes>
  State step(State state, const Takes& takes);
  // Follows references and ends from waiting_ to what takes characters or tokens.
  State settle();
  bool expand(Frame frame);
  // The set of reached_, with the frames of one position joined.
  State join_reached();
  State& known(State state, std::uint32_t kind);
  [[nodiscard]] bool is_full() const { return work_ > kTokenWork || frames_.size() > kMostFrames; }

  std::shared_ptr<const GbnfProgram> program_;
  std::uint32_t table_size_;

  std::vector<Frame> frames_;          // set by set
  std::vector<std::uint32_t> begins_;  // per set, and the end; a set only refers to sets before it
  std::vector<State> slots_;           // open addressing by content

  std::vector<std::uint32_t> table_of_;  // per set
  std::vector<State> tables_;            // for the kinds of characters below table_size_
  // For other kinds, for tokens, and for what there are too many tables for.
  std::unordered_map<std::uint64_t, State> others_;

  std::size_t work_ = 0;
  std::size_t step_end_ = 0;  // of work_, for the present step
  std::vector<Frame> waiting_;
  std::vector<Frame> reached_;
  std::vector<Frame> joined_;
  std::vector<Frame> returns_;
  Seen seen_;
};

}  // namespace berth::worker
