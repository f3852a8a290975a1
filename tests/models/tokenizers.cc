#include "tests/models/tokenizers.h"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace berth::test_models {
namespace {

// llama_token_type
constexpr std::int32_t kNormal = 1;
constexpr std::int32_t kUnknown = 2;
constexpr std::int32_t kControl = 3;
constexpr std::int32_t kByte = 6;

constexpr std::array<std::string_view, 4> kBpeControl = {"<|endoftext|>", "<s>", "<|im_start|>",
                                                         "<|im_end|>"};
constexpr std::array<std::string_view, 5> kSpmControl = {"<unk>", "<s>", "</s>", "<|im_start|>",
                                                         "<|im_end|>"};
constexpr std::array<std::string_view, 5> kWpmControl = {"[PAD]", "[UNK]", "[CLS]", "[SEP]",
                                                         "[MASK]"};
// Begins a word, in SPM and, in GGUF, also in WPM.
constexpr std::string_view kSpmBlank = "\xE2\x96\x81";  // U+2581

std::string utf8(std::uint32_t code) {
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0U | (code >> 6U)), static_cast<char>(0x80U | (code & 0x3FU))};
}

// How the tokens of byte-level BPE write each byte: printable Latin-1 as itself, the others in
// their order from U+0100.
std::array<std::string, 256> byte_letters() {
  std::array<std::string, 256> letters;
  std::uint32_t next = 0x100;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    const bool itself = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) ||
                        (byte >= 0xAE && byte <= 0xFF);
    letters.at(byte) = utf8(itself ? byte : next++);
  }
  return letters;
}

void set_bpe(GgufWriter& writer, std::uint32_t size) {
  const auto letters = byte_letters();
  std::vector<std::string> tokens(kBpeControl.begin(), kBpeControl.end());
  std::vector<std::int32_t> types(tokens.size(), kControl);
  tokens.insert(tokens.end(), letters.begin(), letters.end());
  // The pre-tokenizer of llama 3 takes a whole " word" that is in the vocabulary as it is; the one
  // merge that has to be there joins two bytes that no UTF-8 text has.
  const std::string dummy = letters[0xFE] + letters[0xFF];
  tokens.push_back(dummy);
  for (std::uint32_t i = 0; tokens.size() < size; ++i) tokens.push_back(letters[' '] + word(i));
  types.resize(tokens.size(), kNormal);

  writer.set_text("tokenizer.ggml.model", "gpt2");
  writer.set_text("tokenizer.ggml.pre", "llama-bpe");
  writer.set_texts("tokenizer.ggml.tokens", tokens);
  writer.set_i32s("tokenizer.ggml.token_type", types);
  writer.set_texts("tokenizer.ggml.merges", {letters[0xFE] + " " + letters[0xFF]});
  writer.set_u32("tokenizer.ggml.bos_token_id", 1);
  writer.set_u32("tokenizer.ggml.eos_token_id", 3);
  writer.set_u32("tokenizer.ggml.eot_token_id", 3);
  writer.set_u32("tokenizer.ggml.padding_token_id", 0);
  writer.set_bool("tokenizer.ggml.add_bos_token", true);
}

void set_spm(GgufWriter& writer, std::uint32_t size) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::vector<std::string> tokens(kSpmControl.begin(), kSpmControl.end());
  std::vector<std::int32_t> types(tokens.size(), kControl);
  types[0] = kUnknown;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    tokens.push_back(std::string("<0x") + kHex[byte >> 4U] + kHex[byte & 15U] + ">");
    types.push_back(kByte);
  }
  tokens.emplace_back(kSpmBlank);
  for (char letter = '!'; letter <= '~'; ++letter) tokens.emplace_back(1, letter);
  for (std::uint32_t i = 0; tokens.size() < size; ++i) {
    tokens.push_back(std::string(kSpmBlank) + word(i));
  }
  types.resize(tokens.size(), kNormal);
  std::vector<float> scores;
  for (std::size_t i = 0; i < tokens.size(); ++i) scores.push_back(-static_cast<float>(i));

  writer.set_text("tokenizer.ggml.model", "llama");
  writer.set_text("tokenizer.ggml.pre", "default");
  writer.set_texts("tokenizer.ggml.tokens", tokens);
  writer.set_f32s("tokenizer.ggml.scores", scores);
  writer.set_i32s("tokenizer.ggml.token_type", types);
  writer.set_u32("tokenizer.ggml.bos_token_id", 1);
  writer.set_u32("tokenizer.ggml.eos_token_id", 2);
  writer.set_u32("tokenizer.ggml.eot_token_id", 4);
  writer.set_u32("tokenizer.ggml.unknown_token_id", 0);
  writer.set_bool("tokenizer.ggml.add_bos_token", true);
  writer.set_bool("tokenizer.ggml.add_eos_token", false);
  writer.set_bool("tokenizer.ggml.add_space_prefix", false);
}

// Upper case is not in the vocabulary: the tokenizer makes text lower.
constexpr bool is_wpm_letter(char letter) {
  return letter < 'A' || letter > 'Z';
}
constexpr std::uint32_t kWpmLetters = '~' - '!' + 1 - 26;

void set_wpm(GgufWriter& writer, std::uint32_t size) {
  std::vector<std::string> tokens(kWpmControl.begin(), kWpmControl.end());
  std::vector<std::int32_t> types(tokens.size(), kControl);
  types[1] = kUnknown;
  // A letter within a word, and as the first of one.
  for (const std::string_view start : {std::string_view(), kSpmBlank}) {
    for (char letter = '!'; letter <= '~'; ++letter) {
      if (is_wpm_letter(letter)) tokens.push_back(std::string(start) + letter);
    }
  }
  for (std::uint32_t i = 0; tokens.size() < size; ++i) {
    tokens.push_back(std::string(kSpmBlank) + word(i));
  }
  types.resize(tokens.size(), kNormal);

  writer.set_text("tokenizer.ggml.model", "bert");
  writer.set_text("tokenizer.ggml.pre", "default");
  writer.set_texts("tokenizer.ggml.tokens", tokens);
  writer.set_i32s("tokenizer.ggml.token_type", types);
  writer.set_u32("tokenizer.ggml.token_type_count", 2);
  writer.set_u32("tokenizer.ggml.padding_token_id", 0);
  writer.set_u32("tokenizer.ggml.unknown_token_id", 1);
  writer.set_u32("tokenizer.ggml.bos_token_id", 2);
  writer.set_u32("tokenizer.ggml.cls_token_id", 2);
  writer.set_u32("tokenizer.ggml.eos_token_id", 3);
  writer.set_u32("tokenizer.ggml.seperator_token_id", 3);  // so spelt in the format
  writer.set_u32("tokenizer.ggml.mask_token_id", 4);
}

}  // namespace

std::uint32_t control_tokens(Tokenizer tokenizer) {
  switch (tokenizer) {
    case Tokenizer::kBpe:
      return static_cast<std::uint32_t>(kBpeControl.size());
    case Tokenizer::kSpm:
      return static_cast<std::uint32_t>(kSpmControl.size());
    case Tokenizer::kWpm:
      return static_cast<std::uint32_t>(kWpmControl.size());
    case Tokenizer::kNone:
      break;
  }
  return 0;
}

std::uint32_t special_tokens(Tokenizer tokenizer) {
  switch (tokenizer) {
    case Tokenizer::kBpe:
      return control_tokens(tokenizer) + 256 + 1;
    case Tokenizer::kSpm:
      return control_tokens(tokenizer) + 256 + 1 + ('~' - '!' + 1);
    case Tokenizer::kWpm:
      return control_tokens(tokenizer) + 2 * kWpmLetters;
    case Tokenizer::kNone:
      break;
  }
  return 0;
}

std::string word(std::uint32_t number) {
  constexpr std::string_view kConsonants = "bdfgklmnprstvz";
  constexpr std::string_view kVowels = "aeiou";
  std::string out;
  // At least two syllables; the digits of a number in base 70.
  std::uint32_t rest = number;
  for (std::uint32_t syllable = 0; syllable < 2 || rest > 0; ++syllable) {
    out.push_back(kConsonants[rest % kConsonants.size()]);
    rest /= static_cast<std::uint32_t>(kConsonants.size());
    out.push_back(kVowels[rest % kVowels.size()]);
    rest /= static_cast<std::uint32_t>(kVowels.size());
  }
  return out;
}

Status set_tokenizer(GgufWriter& writer, Tokenizer tokenizer, std::uint32_t size) {
  if (size < special_tokens(tokenizer)) {
    return fail(Reason::kInvalidArgument,
                "a vocabulary of " + std::to_string(size) +
                    " tokens is too small: control tokens and bytes take " +
                    std::to_string(special_tokens(tokenizer)));
  }
  switch (tokenizer) {
    case Tokenizer::kBpe:
      set_bpe(writer, size);
      break;
    case Tokenizer::kSpm:
      set_spm(writer, size);
      break;
    case Tokenizer::kWpm:
      set_wpm(writer, size);
      break;
    case Tokenizer::kNone:
      break;
  }
  return {};
}

}  // namespace berth::test_models
