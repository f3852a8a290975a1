#include "worker/grammar/grammar_place.h"

namespace berth::worker {

GrammarPlace after_text(GbnfStates& states, GrammarPlace place, std::string_view text) {
  for (const char byte : text) {
    const auto step = place.character.add(static_cast<std::uint8_t>(byte));
    if (step == PartialCharacter::Step::kPart) continue;
    if (step == PartialCharacter::Step::kBroken || place.character.code_point() == 0) {
      return {GbnfStates::kRefused, {}};
    }
    place.state = states.after_character(place.state, place.character.code_point());
    if (place.state >= GbnfStates::kTooMany) return {place.state, {}};
  }
  if (place.character.is_open() &&
      !states.takes_some(place.state, place.character.lowest(), place.character.highest())) {
    return {GbnfStates::kRefused, {}};
  }
  return place;
}

GrammarPlace after_token(GbnfStates& states, const GrammarPlace& place, std::uint32_t token,
                         std::string_view text) {
  if (text.empty()) return {GbnfStates::kRefused, {}};
  auto after = after_text(states, place, text);
  if (!states.program().has_tokens() || place.character.is_open()) return after;
  const auto named = states.after_token(place.state, token);
  if (named == GbnfStates::kRefused) return after;
  // Within a character, the other reading has no state of its own.
  if (after.character.is_open()) after.state = GbnfStates::kRefused;
  return {states.either(named, after.state), {}};
}

}  // namespace berth::worker
