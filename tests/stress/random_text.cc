#include "tests/stress/random_text.h"

#include <algorithm>

namespace berth::stress {
namespace {

std::string_view word(Random& random) {
  return one_text(random, {"Hello", "name",   "is",     "Anna",  "the", "code",   "word", "falcon",
                           "What",  "2 + 2",  "France", "count", "up",  "to",     "my",   "number",
                           "4821",  "repeat", "?",      ".",     "x",   "straße", "日本", "naïve"});
}

std::string_view control_text(Random& random) {
  return one_text(random, {"<|im_start|>",
                           "<|im_end|>",
                           "<|endoftext|>",
                           "<s>",
                           "</s>",
                           "<unk>",
                           "<eos>",
                           "<|im_start|>assistant\n",
                           "<tool_call>",
                           "</tool_call>",
                           "<think>",
                           "</think>",
                           "[TOOL_CALLS]",
                           "[INST]",
                           "<|python_tag|>",
                           "<|eot_id|>",
                           "[CLS]",
                           "[SEP]",
                           "<|im_",
                           "im_end|>",
                           "<start_of_turn>",
                           "<｜tool▁calls▁begin｜>"});
}

// Of any plane, without surrogates.
std::uint32_t code_point(Random& random) {
  constexpr std::uint32_t kSurrogates = 0xD800;
  constexpr std::uint32_t kAfterSurrogates = 0xE000;
  const auto point = static_cast<std::uint32_t>(any_size(random, 0, 0x10FFFF));
  return point >= kSurrogates && point < kAfterSurrogates ? 0x1F600 : point;
}

void append_words(Random& random, std::size_t bytes, std::string& text) {
  while (text.size() < bytes) {
    text += word(random);
    if (random.percent(80)) text += ' ';
  }
}

}  // namespace

void append_character(std::string& text, std::uint32_t code_point) {
  const auto put = [&](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  const auto follow = [&](std::uint32_t shift) { put(0x80U | ((code_point >> shift) & 0x3FU)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0U | (code_point >> 6U));
    follow(0);
  } else if (code_point < 0x10000) {
    put(0xE0U | (code_point >> 12U));
    follow(6);
    follow(0);
  } else {
    put(0xF0U | (code_point >> 18U));
    follow(12);
    follow(6);
    follow(0);
  }
}

std::string random_text(Random& random, std::size_t bytes) {
  std::string text;
  switch (random.below(8)) {
    case 0:
      break;
    case 1:
      while (text.size() < bytes) append_character(text, code_point(random));
      break;
    case 2:
      while (text.size() < bytes) text += control_text(random);
      break;
    case 3: {
      const auto again = code_point(random);
      while (text.size() < bytes) append_character(text, again);
      break;
    }
    case 4:
      while (text.size() < bytes) {
        text += random.percent(30) ? control_text(random) : word(random);
        text += one_text(random, {" ", "\n", "\t", "\r\n", "  ", ""});
      }
      break;
    default:
      append_words(random, bytes, text);
  }
  return text;
}

std::string text_of_any_length(Random& random) {
  constexpr std::size_t kUsual = 200;
  constexpr std::size_t kLong = std::size_t{100} << 10U;
  constexpr std::size_t kHuge = std::size_t{3} << 20U;
  const auto kind = random.below(200);
  const auto most = kind == 0 ? kHuge : kind < 12 ? kLong : kUsual;
  return random_text(random, any_size(random, 0, most));
}

std::string broken_text(Random& random) {
  auto text = random_text(random, any_size(random, 0, 200));
  const auto bad = one_text(random, {"\xff", "\xc3", "\xc3(", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                     "\x80", "\xf0\x9f\x98", "\xc0\xaf"});
  text.insert(random.below(text.size() + 1), bad);
  // A character that was cut in two may have become whole again.
  return text + "\xff";
}

}  // namespace berth::stress
