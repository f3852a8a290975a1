#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "worker/grammar/rule_book.h"

namespace berth::worker {

// GBNF for exactly these texts (well-formed UTF-8, at least one). Many are grouped by common
// beginnings, so that libllama has few alternatives open at any place.
std::string one_of_texts(std::vector<std::string> texts, std::string_view hint, RuleBook& book);

// GBNF for a JSON string, with its quotes, that is none of `names` (plain text, well-formed UTF-8).
// Strings that spell the beginning of a name with \u or \/ escapes are left out too.
std::string string_other_than(const std::vector<std::string>& names, RuleBook& book);

}  // namespace berth::worker
