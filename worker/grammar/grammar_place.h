#pragma once

#include <cstdint>
#include <string_view>

#include "worker/grammar/gbnf_states.h"
#include "worker/grammar/partial_character.h"

namespace berth::worker {

// Where the text of an answer stands in a grammar, which may be within a character. A value; of one
// GbnfStates, until its keep_only().
struct GrammarPlace {
  GbnfStates::State state = GbnfStates::kRefused;
  PartialCharacter character;
};

// Behind `text`. The grammar refuses what is not UTF-8, and NUL, which has no place in a text. The
// state is kRefused or kTooMany where it ends there.
GrammarPlace after_text(GbnfStates& states, GrammarPlace place, std::string_view text);

// Behind a token that has this text: the grammar may name the token, or have its characters. A
// token without a text is refused.
GrammarPlace after_token(GbnfStates& states, const GrammarPlace& place, std::uint32_t token,
                         std::string_view text);

// Whether the text may end here.
inline bool is_complete(const GbnfStates& states, const GrammarPlace& place) {
  return !place.character.is_open() && states.is_complete(place.state);
}

}  // namespace berth::worker
