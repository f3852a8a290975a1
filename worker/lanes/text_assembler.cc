#include "worker/lanes/text_assembler.h"

#include <algorithm>
#include <utility>

namespace berth::worker {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace

void Utf8Assembler::drop_pending(std::string& out) {
  out.append(kReplacement);
  pending_size_ = 0;
}

void Utf8Assembler::push(std::string_view bytes, std::string& out) {
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (pending_size_ > 0) {
      if (byte >= low_ && byte <= high_) {
        pending_[pending_size_++] = c;
        low_ = 0x80;
        high_ = 0xBF;
        if (pending_size_ == wanted_) {
          out.append(pending_.data(), pending_size_);
          pending_size_ = 0;
        }
        continue;
      }
      drop_pending(out);  // and look at this byte afresh
    }
    low_ = 0x80;
    high_ = 0xBF;
    if (byte < 0x80) {
      out.push_back(c);
      continue;
    }
    // Table 3-7 of the Unicode standard: the second byte is bounded so that no overlong form, no
    // surrogate and nothing above U+10FFFF passes.
    if (byte >= 0xC2 && byte <= 0xDF) {
      wanted_ = 2;
    } else if (byte >= 0xE0 && byte <= 0xEF) {
      wanted_ = 3;
      if (byte == 0xE0) low_ = 0xA0;
      if (byte == 0xED) high_ = 0x9F;
    } else if (byte >= 0xF0 && byte <= 0xF4) {
      wanted_ = 4;
      if (byte == 0xF0) low_ = 0x90;
      if (byte == 0xF4) high_ = 0x8F;
    } else {
      out.append(kReplacement);
      continue;
    }
    pending_[0] = c;
    pending_size_ = 1;
  }
}

void Utf8Assembler::finish(std::string& out) {
  if (pending_size_ > 0) drop_pending(out);
}

StopMatcher::StopMatcher(std::vector<std::string> texts) {
  patterns_.reserve(texts.size());
  for (auto& text : texts) {
    Pattern pattern;
    pattern.fallback.assign(text.size() + 1, 0);
    std::size_t border = 0;
    for (std::size_t i = 1; i < text.size(); ++i) {
      while (border > 0 && text[i] != text[border]) border = pattern.fallback[border];
      if (text[i] == text[border]) ++border;
      pattern.fallback[i + 1] = static_cast<std::uint16_t>(border);
    }
    pattern.text = std::move(text);
    patterns_.push_back(std::move(pattern));
  }
}

bool StopMatcher::push(std::string_view text, std::string& out) {
  if (patterns_.empty()) {
    out.append(text);
    return false;
  }
  for (const char c : text) {
    held_.push_back(c);
    const Pattern* complete = nullptr;
    std::size_t longest = 0;
    for (auto& pattern : patterns_) {
      auto& matched = pattern.matched;
      while (matched > 0 && pattern.text[matched] != c) matched = pattern.fallback[matched];
      if (pattern.text[matched] == c) ++matched;
      if (matched == pattern.text.size() &&
          (complete == nullptr || matched > complete->text.size())) {
        complete = &pattern;
      }
      longest = std::max(longest, matched);
    }
    if (complete != nullptr) {
      out.append(held_, 0, held_.size() - complete->text.size());
      held_.clear();
      met_ = complete->text;
      return true;
    }
    if (longest == 0) {
      out.append(held_);
      held_.clear();
    } else if (held_.size() > longest) {
      out.append(held_, 0, held_.size() - longest);
      held_.erase(0, held_.size() - longest);
    }
  }
  return false;
}

void StopMatcher::finish(std::string& out) {
  out.append(held_);
  held_.clear();
}

bool TextAssembler::push(std::string_view bytes, std::string& out) {
  characters_.clear();
  utf8_.push(bytes, characters_);
  return stops_.push(characters_, out);
}

bool TextAssembler::finish(std::string& out) {
  characters_.clear();
  utf8_.finish(characters_);
  if (stops_.push(characters_, out)) return true;
  stops_.finish(out);
  return false;
}

}  // namespace berth::worker
