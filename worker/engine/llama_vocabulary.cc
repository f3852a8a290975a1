#include "worker/engine/llama_vocabulary.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <exception>
#include <utility>

#include "llama.h"

namespace berth::worker {
namespace {

// Whether all bytes are there that a UTF-8 text can have.
bool has_utf8(const std::array<bool, 256>& bytes) {
  constexpr std::size_t kFirstOverlong = 0xC0;  // 0xC0, 0xC1 and from 0xF5 on are in none
  constexpr std::size_t kEndOfUtf8 = 0xF5;
  for (std::size_t byte = 0; byte < kEndOfUtf8; ++byte) {
    const bool used = byte != kFirstOverlong && byte != kFirstOverlong + 1;
    if (used && !bytes.at(byte)) return false;
  }
  return true;
}

}  // namespace

std::uint32_t LlamaVocabulary::size() const {
  return static_cast<std::uint32_t>(llama_vocab_n_tokens(vocabulary_));
}

std::string LlamaVocabulary::text(TokenId token) const {
  std::string out;
  if (token != LLAMA_TOKEN_NULL) append_piece(token, out, true);
  return out;
}

Result<std::vector<TokenId>> LlamaVocabulary::run_tokenizer(std::string_view text, bool add_special,
                                                            bool parse_special) const {
  if (text.size() > static_cast<std::size_t>(INT32_MAX) / 2) {
    return fail(Reason::kInvalidArgument, "The text is longer than 1 GiB.");
  }
  std::vector<TokenId> tokens;
  try {
    tokens.resize(text.size() + 8);
    const auto run = [&] {
      return llama_tokenize(vocabulary_, text.data(), static_cast<std::int32_t>(text.size()),
                            tokens.data(), static_cast<std::int32_t>(tokens.size()), add_special,
                            parse_special);
    };
    auto count = run();
    if (count < 0 && count != INT32_MIN) {
      tokens.resize(static_cast<std::size_t>(-count));
      count = run();
    }
    if (count < 0) return fail(Reason::kInternal, "The model's tokenizer refused the text.");
    tokens.resize(static_cast<std::size_t>(count));
  } catch (const std::exception& problem) {
    return fail(Reason::kInternal, std::string("The model's tokenizer failed: ") + problem.what());
  }
  return tokens;
}

Result<std::vector<TokenId>> LlamaVocabulary::tokenize(std::string_view text,
                                                       bool add_special) const {
  if (add_special && llama_vocab_get_add_bos(vocabulary_)) {
    const auto bos = this->text(llama_vocab_bos(vocabulary_));
    if (!bos.empty() && text.starts_with(bos)) text.remove_prefix(bos.size());
  }
  return tokenize_open(text, add_special, true);
}

Result<std::vector<TokenId>> LlamaVocabulary::tokenize_open(std::string_view text, bool add_special,
                                                            bool parse_special) const {
  auto tokens = run_tokenizer(text, add_special, parse_special);
  // Some models close every text with their EOS; a prompt is to be continued.
  if (tokens && add_special && llama_vocab_get_add_eos(vocabulary_) && !tokens->empty() &&
      tokens->back() == llama_vocab_eos(vocabulary_)) {
    tokens->pop_back();
  }
  return tokens;
}

Result<std::vector<TokenId>> LlamaVocabulary::tokenize_behind(std::string_view text,
                                                              bool parse_special) const {
  if (llama_vocab_type(vocabulary_) != LLAMA_VOCAB_TYPE_SPM) {
    return run_tokenizer(text, false, parse_special);
  }
  constexpr std::string_view kLead = "\n";
  const auto lead = run_tokenizer(kLead, false, false);
  if (lead) {
    auto tokens = run_tokenizer(std::string(kLead).append(text), false, parse_special);
    if (!tokens) return tokens;
    if (tokens->size() >= lead->size() && std::equal(lead->begin(), lead->end(), tokens->begin())) {
      tokens->erase(tokens->begin(), tokens->begin() + static_cast<std::ptrdiff_t>(lead->size()));
      return tokens;
    }
  }
  // The line's end has merged with the text, or is unknown: then the space in front has to stay.
  return run_tokenizer(text, false, parse_special);
}

Result<std::vector<TokenId>> LlamaVocabulary::tokenize_parts(std::span<const PromptPart> parts,
                                                             bool add_special) const {
  if (parts.empty()) return tokenize("", add_special);
  const auto& first = parts.front();
  auto all = first.literal ? tokenize_open(first.text, add_special, false)
                           : tokenize(first.text, add_special);
  for (std::size_t i = 1; all && i < parts.size(); ++i) {
    auto tokens = tokenize_behind(parts[i].text, !parts[i].literal);
    if (!tokens) return tokens;
    all->insert(all->end(), tokens->begin(), tokens->end());
  }
  return all;
}

std::vector<std::string> LlamaVocabulary::control_texts() const {
  std::vector<std::string> texts;
  const auto count = static_cast<TokenId>(size());
  for (TokenId token = 0; token < count; ++token) {
    if (!llama_vocab_is_control(vocabulary_, token)) continue;
    if (auto piece = text(token); !piece.empty()) texts.push_back(std::move(piece));
  }
  return texts;
}

std::optional<TokenId> LlamaVocabulary::control_token(std::string_view text) const {
  const auto tokens = run_tokenizer(text, false, true);
  if (!tokens || tokens->size() != 1) return std::nullopt;
  if (!llama_vocab_is_control(vocabulary_, tokens->front())) return std::nullopt;
  return tokens->front();
}

void LlamaVocabulary::append_piece(TokenId token, std::string& out, bool show_control) const {
  std::array<char, 256> buffer;  // NOLINT(*-member-init): written by libllama
  const auto size =
      llama_token_to_piece(vocabulary_, token, buffer.data(), buffer.size(), 0, show_control);
  if (size >= 0) {
    out.append(buffer.data(), static_cast<std::size_t>(size));
    return;
  }
  std::string longer(static_cast<std::size_t>(-size), '\0');
  const auto again =
      llama_token_to_piece(vocabulary_, token, longer.data(), -size, 0, show_control);
  if (again > 0) out.append(longer.data(), static_cast<std::size_t>(again));
}

bool LlamaVocabulary::ends_generation(TokenId token) const {
  return llama_vocab_is_eog(vocabulary_, token);
}

TokenBytes LlamaVocabulary::token_bytes() const {
  std::array<bool, 256> known{};  // bytes that are a token of their own
  std::array<char, 256> buffer;   // NOLINT(*-member-init): written by libllama
  constexpr auto kNoText = LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN;
  TokenBytes bytes;
  const auto count = static_cast<TokenId>(size());
  for (TokenId token = 0; token < count; ++token) {
    const auto length =
        llama_token_to_piece(vocabulary_, token, buffer.data(), buffer.size(), 0, true);
    bytes.longest = std::max(bytes.longest, static_cast<std::uint32_t>(std::abs(length)));
    if (length == 1 && (llama_vocab_get_attr(vocabulary_, token) & kNoText) == 0) {
      known.at(static_cast<unsigned char>(buffer.front())) = true;
    }
  }
  // These write what they have no token for in bytes; where they have all, nothing gets lost.
  const auto type = llama_vocab_type(vocabulary_);
  const bool writes_bytes = type == LLAMA_VOCAB_TYPE_BPE || type == LLAMA_VOCAB_TYPE_SPM;
  if (writes_bytes && has_utf8(known)) bytes.bound = bytes.longest;
  return bytes;
}

}  // namespace berth::worker
