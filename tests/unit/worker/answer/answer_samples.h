#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/worker/answer/parsed_answer.h"
#include "worker/answer/answer_form.h"

// Random answers for the property tests. Each function draws from RapidCheck's generators, so it is
// called within a property only.

namespace berth::worker {

bool coin();
// 0 up to and without `end`, all alike.
std::size_t below(std::size_t end);

// Text with starts of markers, none of them complete.
std::string text_of(std::size_t parts, std::string_view end = ".");
// Anything a model may write, right or wrong.
std::string noise();
std::vector<std::string> cut_at_will(const std::string& text);

// A well-formed answer of a form, and what it says.
struct Sample {
  AnswerForm form;
  std::string text;
  ParsedAnswer expected;
};
Sample sample_of(ToolForm tools);

}  // namespace berth::worker
