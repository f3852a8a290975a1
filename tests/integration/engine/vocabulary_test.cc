// LlamaVocabulary with libllama's own tokenizers.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/integration/engine/vocabulary_model.h"
#include "worker/engine/fewest_tokens.h"

namespace berth::worker {
namespace {

using test_models::Tokenizer;

const VocabularyModel& model_of(std::size_t number) {
  static const VocabularyModel bpe(Tokenizer::kBpe, 2000);
  static const VocabularyModel spm(Tokenizer::kSpm, 2000);
  static const VocabularyModel wpm(Tokenizer::kWpm, 2000);
  static const VocabularyModel tinychat("tinychat.gguf");
  const std::vector<const VocabularyModel*> all = {&bpe, &spm, &tinychat, &wpm};
  return *all.at(number);
}
constexpr std::size_t kByteComplete = 3;  // the first so many
constexpr std::size_t kAll = 4;

std::string bytes_of(const LlamaVocabulary& vocabulary, const std::vector<TokenId>& tokens) {
  std::string out;
  for (const auto token : tokens) vocabulary.append_piece(token, out, false);
  return out;
}

// What a tokenizer puts in front of a text.
std::string front(const LlamaVocabulary& vocabulary) {
  auto text = bytes_of(vocabulary, *vocabulary.tokenize("a", false));
  text.pop_back();
  return text;
}

bool has_control(const LlamaVocabulary& vocabulary, const std::vector<TokenId>& tokens) {
  return std::any_of(tokens.begin(), tokens.end(), [&](TokenId token) {
    return llama_vocab_is_control(vocabulary.get(), token);
  });
}

// Well-formed UTF-8 with what tokenizers treat in special ways, and the texts of `extra`; without
// U+2581, which is a space to SPM.
std::string any_text(const std::vector<std::string>& extra) {
  // clang-format off
  static const std::vector<std::string> kPieces = {
      " ", "  ", "\n", "\n\n", "\t", "a", "B", "the", " word", "12345", ".", "<", ">", "|", "<|",
      "|>", "im", "[", "]", "'s", "\xC3\xA9", "\xE4\xB8\xAD", "\xF0\x9F\x98\x80", "\xCC\x81",
      "\xE2\x80\x8B", "\x01", "\x7F"};
  // clang-format on
  auto pieces = kPieces;
  pieces.insert(pieces.end(), extra.begin(), extra.end());
  const auto chosen = *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(pieces));
  std::string text;
  for (const auto& piece : chosen) text += piece;
  return text;
}

// The text cut between any two of its characters.
std::vector<PromptPart> cut(const std::string& text, bool first_literal) {
  std::vector<PromptPart> parts(1);
  parts.front().literal = first_literal;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool starts = (static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80U;
    if (at > 0 && starts && *rc::gen::arbitrary<bool>()) {
      parts.push_back(PromptPart{"", *rc::gen::arbitrary<bool>()});
    }
    parts.back().text.push_back(text[at]);
  }
  return parts;
}

RC_GTEST_PROP(Vocabulary, GivesTheBytesBack, ()) {
  const auto vocabulary = model_of(*rc::gen::inRange<std::size_t>(0, kByteComplete)).vocabulary();
  const auto text = any_text({});
  const auto tokens = vocabulary.tokenize(text, false);
  RC_ASSERT(tokens.has_value());
  RC_ASSERT(bytes_of(vocabulary, *tokens) == (text.empty() ? "" : front(vocabulary) + text));
}

RC_GTEST_PROP(Vocabulary, PartsGiveTheSameBytesWhereverTheyAreCut, ()) {
  const auto vocabulary = model_of(*rc::gen::inRange<std::size_t>(0, kByteComplete)).vocabulary();
  const auto text = any_text({});
  RC_PRE(!text.empty());
  const auto parts = cut(text, *rc::gen::arbitrary<bool>());
  const auto tokens = vocabulary.tokenize_parts(parts, false);
  RC_ASSERT(tokens.has_value());
  RC_ASSERT(bytes_of(vocabulary, *tokens) == front(vocabulary) + text);
}

RC_GTEST_PROP(Vocabulary, LiteralPartsHaveNoControlTokens, ()) {
  const auto vocabulary = model_of(*rc::gen::inRange<std::size_t>(0, kAll)).vocabulary();
  const auto text = any_text(vocabulary.control_texts());
  auto parts = cut(text, true);
  for (auto& part : parts) part.literal = true;
  const auto tokens = vocabulary.tokenize_parts(parts, false);
  RC_ASSERT(tokens.has_value());
  // WPM writes what it does not know as its unknown token, which is of another kind than control.
  RC_ASSERT(!has_control(vocabulary, *tokens));
}

RC_GTEST_PROP(Vocabulary, FewestTokensIsNeverMoreThanThereAre, ()) {
  const auto vocabulary = model_of(*rc::gen::inRange<std::size_t>(0, kAll)).vocabulary();
  const auto text = any_text(vocabulary.control_texts());
  const auto tokens = vocabulary.tokenize(text, false);
  RC_ASSERT(tokens.has_value());
  RC_ASSERT(fewest_tokens(text, vocabulary.token_bytes().bound) <= tokens->size());
}

TEST(Vocabulary, ControlTextsAreTokensInTemplatesOnly) {
  for (std::size_t number = 0; number < kAll; ++number) {
    const auto vocabulary = model_of(number).vocabulary();
    const auto texts = vocabulary.control_texts();
    ASSERT_FALSE(texts.empty());
    for (const auto& text : texts) {
      const auto token = vocabulary.control_token(text);
      ASSERT_TRUE(token) << text;
      const std::vector<PromptPart> mixed = {
          {"a", true}, {text, false}, {text, true}, {"b", false}};
      const auto tokens = vocabulary.tokenize_parts(mixed, false);
      ASSERT_TRUE(tokens) << text;
      EXPECT_EQ(std::count(tokens->begin(), tokens->end(), *token), 1) << number << text;
    }
  }
}

// What libllama itself makes of a text in which nothing is a command.
std::vector<TokenId> by_libllama(const LlamaVocabulary& vocabulary, const std::string& text) {
  std::vector<TokenId> tokens(text.size() + 8);
  const auto count = llama_tokenize(
      vocabulary.get(), text.data(), static_cast<std::int32_t>(text.size()), tokens.data(),
      static_cast<std::int32_t>(tokens.size()), /*add_special=*/true, /*parse_special=*/false);
  EXPECT_GE(count, 0);
  tokens.resize(static_cast<std::size_t>(std::max(count, 0)));
  return tokens;
}

std::vector<TokenId> of_one_literal(const LlamaVocabulary& vocabulary, const std::string& text) {
  const std::vector<PromptPart> parts = {{text, true}};
  return vocabulary.tokenize_parts(parts, true).value_or(std::vector<TokenId>());
}

TEST(WholeText, StandsBetweenClsAndSep) {
  const auto vocabulary = model_of(3).vocabulary();
  const auto tokens = vocabulary.tokenize_whole("hello [SEP] you");
  ASSERT_TRUE(tokens);
  ASSERT_GT(tokens->size(), 2U);
  const auto sep = *vocabulary.control_token("[SEP]");
  EXPECT_EQ(tokens->front(), *vocabulary.control_token("[CLS]"));
  EXPECT_EQ(tokens->back(), sep);
  EXPECT_EQ(std::count(tokens->begin(), tokens->end(), sep), 1);
  EXPECT_EQ(*tokens, by_libllama(vocabulary, "hello [SEP] you"));
  EXPECT_EQ(of_one_literal(vocabulary, "hello [SEP] you"), *tokens);
}

TEST(WholeText, KeepsItsEosAndAPromptDoesNot) {
  const VocabularyModel model(Tokenizer::kSpm, 2000, {{"tokenizer.ggml.add_eos_token", true}});
  const auto vocabulary = model.vocabulary();
  const auto tokens = vocabulary.tokenize_whole("hello");
  ASSERT_TRUE(tokens);
  EXPECT_EQ(tokens->back(), llama_vocab_eos(vocabulary.get()));
  EXPECT_EQ(*tokens, by_libllama(vocabulary, "hello"));
  auto open = *tokens;
  open.pop_back();
  EXPECT_EQ(of_one_literal(vocabulary, "hello"), open);
  EXPECT_EQ(*vocabulary.tokenize("hello", true), open);
}

TEST(WholeText, HasTheSpaceInFrontOfItsFirstWord) {
  const VocabularyModel model(Tokenizer::kSpm, 2000, {{"tokenizer.ggml.add_space_prefix", true}});
  const auto vocabulary = model.vocabulary();
  const auto tokens = vocabulary.tokenize_whole("hello");
  ASSERT_TRUE(tokens);
  EXPECT_EQ(bytes_of(vocabulary, *tokens), " hello");
  EXPECT_EQ(*tokens, by_libllama(vocabulary, "hello"));
  EXPECT_EQ(of_one_literal(vocabulary, "hello"), *tokens);
}

TEST(WholeText, IsTokenizedAsByLibllama) {
  for (std::size_t number = 0; number < kAll; ++number) {
    const auto vocabulary = model_of(number).vocabulary();
    for (const std::string text : {"", "a", " two words ", "<s>[CLS]</s>", "\n"}) {
      const auto tokens = vocabulary.tokenize_whole(text);
      ASSERT_TRUE(tokens);
      EXPECT_EQ(*tokens, by_libllama(vocabulary, text)) << number << text;
      EXPECT_EQ(of_one_literal(vocabulary, text), *tokens) << number << text;
    }
  }
}

TEST(Vocabulary, WithAllBytesHasABound) {
  EXPECT_EQ(model_of(2).vocabulary().token_bytes().longest, 13U);
  EXPECT_GT(model_of(0).vocabulary().token_bytes().bound, 0U);
  EXPECT_GT(model_of(1).vocabulary().token_bytes().bound, 0U);
  EXPECT_EQ(model_of(2).vocabulary().token_bytes().bound, 13U);
  EXPECT_EQ(model_of(3).vocabulary().token_bytes().bound, 0U);
}

}  // namespace
}  // namespace berth::worker
