#include "tests/fake_engine/fake_engine.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <thread>

namespace berth::worker {
namespace {

constexpr std::uint64_t kHashStart = 1469598103934665603U;  // FNV-1a
constexpr std::uint64_t kHashFactor = 1099511628211U;
constexpr auto kPiece = std::chrono::milliseconds(1);  // between two looks at the abort check
constexpr std::uint64_t kPage = 4096;

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  return (hash ^ value) * kHashFactor;
}

std::uint64_t with_token(std::uint64_t hash, TokenId token) {
  return mixed(hash, static_cast<std::uint64_t>(token));
}

std::uint64_t start_of(std::uint64_t seed) {
  return seed == 0 ? kHashStart : mixed(kHashStart, seed);
}

// What is said in place of kEnd where an answer must not end.
constexpr TokenId kInsteadOfEnd = 'z';

TokenId token_after(std::uint64_t hash, std::uint64_t sampler_seed) {
  if (sampler_seed != 0) hash = mixed(hash, sampler_seed);
  hash ^= hash >> 29U;
  if (hash % 24 == 0) return FakeEngine::kEnd;
  return 'a' + static_cast<TokenId>((hash >> 8U) % 26);
}

Duration at_speed(std::size_t tokens, double per_second) {
  if (per_second <= 0 || tokens == 0) return {};
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(static_cast<double>(tokens) / per_second));
}

}  // namespace

void FakeEngine::FakeSampler::accept_prompt(std::span<const TokenId> tokens) {
  text.emplace(tokens.begin(), tokens.end());
  if (on_prompt) on_prompt();
}

FakeEngine::FakeEngine(FakeSettings settings) : settings_(std::move(settings)) {
  const auto& s = settings_;
  facts_.build_id = "fake engine";
  facts_.window = s.window;
  facts_.cells = s.cells != 0 ? s.cells : s.window;
  facts_.sequences = s.sequences;
  facts_.batch = s.batch;
  facts_.micro_batch = s.batch;
  facts_.threads = s.threads;
  facts_.vocabulary = kEnd + 1 + static_cast<std::uint32_t>(s.control_tokens.size());
  facts_.purpose = s.purpose;
  facts_.embedding_size = s.embedding_size;
  if (s.embedding_size > 0) facts_.pooling = s.pooling;
  facts_.draft_tokens = s.draft_tokens;
  facts_.shares_cells = s.shares_cells;
  facts_.layers = s.layers;
  facts_.chat_template = s.chat_template;
  facts_.memory.push_back(MemoryUse{"host", s.weights_bytes, s.kv_bytes, s.working_bytes});
  never_ends = s.endless;
  held_.resize(s.sequences);
  draft_held_.resize(s.sequences);
  if (!s.touch_memory) return;
  for (const auto bytes : {s.weights_bytes, s.kv_bytes, s.working_bytes}) {
    auto& block = memory_.emplace_back(bytes);
    for (std::uint64_t at = 0; at < bytes; at += kPage) block[at] = 1;
  }
}

FakeEngine::FakeEngine(std::uint32_t sequences, std::uint32_t window, std::uint32_t batch)
    : FakeEngine([&] {
        FakeSettings settings;
        settings.sequences = sequences;
        settings.window = window;
        settings.batch = batch;
        return settings;
      }()) {}

std::string FakeEngine::answer_to(std::vector<TokenId> tokens, std::uint64_t seed,
                                  std::uint64_t sampler_seed) {
  auto hash = start_of(seed);
  for (const auto token : tokens) hash = with_token(hash, token);
  std::string answer;
  for (auto next = token_after(hash, sampler_seed); next != kEnd;
       next = token_after(hash, sampler_seed)) {
    answer.push_back(static_cast<char>(next));
    hash = with_token(hash, next);
  }
  return answer;
}

std::string FakeEngine::endless_answer_to(const std::vector<TokenId>& tokens, std::size_t count,
                                          std::uint64_t seed) {
  auto hash = start_of(seed);
  for (const auto token : tokens) hash = with_token(hash, token);
  std::string answer;
  while (answer.size() < count) {
    const auto token = token_after(hash, 0);
    const auto said = token == kEnd ? kInsteadOfEnd : token;
    answer.push_back(static_cast<char>(said));
    hash = with_token(hash, said);
  }
  return answer;
}

void FakeEngine::violation(const std::string& what) const {
  if (on_violation) {
    on_violation(what);
    return;
  }
  const auto line = "fake engine: " + what + "\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
  std::abort();
}

// --- vocabulary

Result<std::vector<TokenId>> FakeEngine::tokenize(std::string_view text,
                                                  bool /*add_special*/) const {
  std::vector<TokenId> tokens;
  while (!text.empty()) {
    std::size_t used = 0;
    for (std::size_t i = 0; i < settings_.control_tokens.size() && used == 0; ++i) {
      const auto& name = settings_.control_tokens[i];
      if (!text.starts_with(name)) continue;
      tokens.push_back(kEnd + 1 + static_cast<TokenId>(i));
      used = name.size();
    }
    if (used == 0) {
      tokens.push_back(static_cast<unsigned char>(text.front()));
      used = 1;
    }
    text.remove_prefix(used);
  }
  return tokens;
}

Result<std::vector<TokenId>> FakeEngine::tokenize_whole(std::string_view text) const {
  std::vector<TokenId> tokens;
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

Result<std::vector<TokenId>> FakeEngine::tokenize_parts(std::span<const PromptPart> parts,
                                                        bool add_special) const {
  std::vector<TokenId> tokens;
  for (const auto& part : parts) {
    if (part.literal) {
      for (const char c : part.text) tokens.push_back(static_cast<unsigned char>(c));
      continue;
    }
    const auto some = tokenize(part.text, add_special);
    tokens.insert(tokens.end(), some->begin(), some->end());
  }
  return tokens;
}

std::vector<std::string> FakeEngine::control_texts() const {
  return settings_.control_tokens;
}

std::optional<TokenId> FakeEngine::control_token(std::string_view text) const {
  const auto& all = settings_.control_tokens;
  const auto found = std::find(all.begin(), all.end(), text);
  if (found == all.end()) return std::nullopt;
  return kEnd + 1 + static_cast<TokenId>(found - all.begin());
}

void FakeEngine::append_piece(TokenId token, std::string& out, bool show_control) const {
  if (token >= 0 && token < kEnd) {
    out.push_back(static_cast<char>(token));
  } else if (show_control && token > kEnd) {
    out.append(settings_.control_tokens.at(static_cast<std::size_t>(token - kEnd - 1)));
  }
}

TokenBytes FakeEngine::token_bytes() const {
  std::size_t longest = 1;
  for (const auto& name : settings_.control_tokens) longest = std::max(longest, name.size());
  const auto bytes = static_cast<std::uint32_t>(longest);
  return {bytes, bytes};
}

Result<std::unique_ptr<Sampler>> FakeEngine::make_sampler(const SamplingSettings& settings) const {
  if (settings.grammar == "refuse") {
    return fail(Reason::kInvalidArgument, "The grammar cannot be parsed.");
  }
  auto sampler = std::make_unique<FakeSampler>();
  if (settings.temperature > 0) sampler->seed = settings.seed;
  sampler->top_logprobs = settings.top_logprobs;
  constexpr std::string_view kFailAfter = "fail-after ";
  if (settings.grammar.starts_with(kFailAfter)) {
    const auto number = std::string_view(settings.grammar).substr(kFailAfter.size());
    std::from_chars(number.data(), number.data() + number.size(), sampler->fail_after);
  }
  return sampler;
}

// --- context

FakeEngine::Sequence& FakeEngine::sequence_of(SequenceId id) {
  if (id >= 0 && static_cast<std::size_t>(id) < held_.size()) {
    return held_[static_cast<std::size_t>(id)];
  }
  violation("there is no sequence " + std::to_string(id));
  return held_.front();
}

void FakeEngine::resize(Sequence& sequence, std::size_t tokens) {
  cells_used_ -= sequence.size();
  sequence.resize(tokens);
  cells_used_ += tokens;
}

std::uint64_t FakeEngine::hash_of(const Sequence& sequence, std::size_t tokens) const {
  return tokens == 0 ? start_of(settings_.seed) : sequence[tokens - 1].hash;
}

std::uint32_t FakeEngine::keep_prefix(SequenceId sequence, std::uint32_t tokens) {
  auto& held = sequence_of(sequence);
  if (tokens > held.size()) {
    violation("sequence " + std::to_string(sequence) + " holds " + std::to_string(held.size()) +
              " tokens, not " + std::to_string(tokens));
    return static_cast<std::uint32_t>(held.size());
  }
  const bool cut = tokens < held.size();
  resize(held, keeps_nothing && cut ? 0 : tokens);
  return static_cast<std::uint32_t>(held.size());
}

std::uint32_t FakeEngine::copy_prefix(SequenceId from, SequenceId to, std::uint32_t tokens) {
  if (!facts_.shares_cells) violation("copy_prefix() without shares_cells");
  const auto& source = sequence_of(from);
  if (from == to || tokens > source.size()) {
    violation("sequence " + std::to_string(from) + " cannot give " + std::to_string(tokens) +
              " tokens to " + std::to_string(to));
    return keep_prefix(to, 0);
  }
  if (keeps_nothing) return keep_prefix(to, 0);
  auto& target = sequence_of(to);
  resize(target, tokens);
  std::copy_n(source.begin(), tokens, target.begin());
  copied_tokens += tokens;
  return tokens;
}

void FakeEngine::add(const BatchItem& item) {
  auto& held = sequence_of(item.sequence);
  if (item.position != held.size()) {
    violation("a gap in sequence " + std::to_string(item.sequence) + ": position " +
              std::to_string(item.position) + " behind " + std::to_string(held.size()));
  }
  if (item.token < 0 || static_cast<std::uint32_t>(item.token) >= facts_.vocabulary) {
    violation("token " + std::to_string(item.token) + " is not in the vocabulary");
  }
  held.push_back(Cell{item.token, with_token(hash_of(held, held.size()), item.token)});
  ++cells_used_;
  if (held.size() > facts_.window) violation("a sequence is longer than the window");
  if (cells_used_ > facts_.cells) violation("more cells than the pool has");
}

DecodeOutcome FakeEngine::decode(std::span<const BatchItem> batch, std::string& error) {
  ++decodes;
  if (facts_.purpose != Purpose::kGenerate) violation("decode() of a model for embeddings");
  if (batch.empty() || batch.size() > facts_.batch) {
    violation("a batch of " + std::to_string(batch.size()) + " tokens");
  }
  batch_.assign(batch.begin(), batch.end());
  std::size_t outputs = 0;
  for (const auto& item : batch) {
    add(item);
    if (item.wants_output) ++outputs;
  }
  if (on_batch) on_batch(batch);
  const auto outcome = compute(batch.size() - outputs, outputs, error);
  if (outcome == DecodeOutcome::kDone) computed_tokens += batch.size();
  return outcome;
}

DecodeOutcome FakeEngine::compute(std::size_t tokens, std::size_t outputs, std::string& error) {
  if (on_decode) on_decode();
  if (++batches_ == settings_.failing_batch) {
    fail_batch();
    fail_next = settings_.batch_failure == FakeFailure::kError;
  }
  if (fail_next.exchange(false)) {
    error = "the test says so";
    return DecodeOutcome::kFailed;
  }
  const auto time = at_speed(tokens, settings_.prompt_speed) +
                    at_speed(std::min<std::size_t>(outputs, 1), settings_.generation_speed);
  if (!spend(time) || abort_wanted()) return DecodeOutcome::kAborted;
  return DecodeOutcome::kDone;
}

void FakeEngine::fail_batch() {
  switch (settings_.batch_failure) {
    case FakeFailure::kError:
      break;
    case FakeFailure::kHang:
      while (!abort_wanted()) sleep(kPiece);
      break;
    case FakeFailure::kStuck:
      while (true) sleep(kPiece);
    case FakeFailure::kCrash:
      std::abort();
    case FakeFailure::kExit:
      ::_exit(3);
  }
}

bool FakeEngine::spend(Duration time) {
  while (time > Duration{}) {
    if (abort_wanted()) return false;
    const auto piece = std::min<Duration>(time, kPiece);
    sleep(piece);
    time -= piece;
  }
  return true;
}

void FakeEngine::sleep(Duration time) const {
  if (pause) {
    pause(time);
  } else {
    std::this_thread::sleep_for(time);
  }
}

TokenId FakeEngine::next_token(std::uint64_t hash, std::uint64_t sampler_seed) const {
  const auto token = token_after(hash, sampler_seed);
  return never_ends && token == kEnd ? kInsteadOfEnd : token;
}

Result<SampledToken> FakeEngine::sample(Sampler& sampler, std::size_t index) {
  auto& fake = static_cast<FakeSampler&>(sampler);
  if (index >= batch_.size() || !batch_[index].wants_output) {
    violation("no output was asked for at " + std::to_string(index));
    return fail(Reason::kInternal, "The model computed no output.");
  }
  const auto& item = batch_[index];
  if (on_sample) on_sample(fake, item);
  if (fake.text) check_text(fake, item);
  if (fake.samples++ >= fake.fail_after) {
    return fail(Reason::kInvalidArgument, "The grammar allows no token here.");
  }
  const auto hash = hash_of(sequence_of(item.sequence), item.position + 1);
  SampledToken sampled;
  sampled.token = next_token(hash, fake.seed);
  add_logprobs(fake, hash, sampled);
  if (fake.text) fake.text->push_back(sampled.token);
  return sampled;
}

void FakeEngine::check_text(const FakeSampler& sampler, const BatchItem& item) {
  const auto& held = sequence_of(item.sequence);
  const auto& text = *sampler.text;
  const bool same = text.size() == item.position + 1 && held.size() >= text.size() &&
                    std::equal(text.begin(), text.end(), held.begin(),
                               [](TokenId token, const Cell& cell) { return token == cell.token; });
  if (!same) {
    violation("sequence " + std::to_string(item.sequence) +
              " does not hold the text that its sampler has followed");
  }
}

void FakeEngine::add_logprobs(const FakeSampler& sampler, std::uint64_t hash,
                              SampledToken& sampled) const {
  if (!sampler.top_logprobs) return;
  const auto logprob = [hash](std::uint32_t rank) {
    return -0.01F * static_cast<float>(hash % 50) - static_cast<float>(rank);
  };
  sampled.logprob = logprob(0);
  for (std::uint32_t rank = 0; rank < *sampler.top_logprobs; ++rank) {
    const auto token =
        rank == 0 ? sampled.token
                  : static_cast<TokenId>((static_cast<std::uint32_t>(sampled.token) + rank) %
                                         facts_.vocabulary);
    sampled.top.push_back(TokenLogprob{token, logprob(rank)});
  }
}

DraftStep FakeEngine::draft(SequenceId sequence, std::span<const TokenId> tokens,
                            DraftLimits limits, std::vector<TokenId>& out) {
  const auto& held = sequence_of(sequence);
  if (facts_.draft_tokens == 0) violation("draft() without a draft model");
  if (held.size() > tokens.size()) violation("draft() behind less than the sequence holds");
  auto& known = draft_held_[static_cast<std::size_t>(&held - held_.data())];
  const auto most_known = std::min(known.size(), tokens.size() - 1);
  const auto differs = std::mismatch(
      known.begin(), known.begin() + static_cast<std::ptrdiff_t>(most_known), tokens.begin());
  known.erase(differs.first, known.end());
  const auto unread = tokens.subspan(known.size());
  const auto read = unread.first(std::min(unread.size(), limits.read));
  if (!read.empty() && on_draft_read) on_draft_read(sequence, known.size(), read.size());
  if (!spend(at_speed(read.size(), settings_.draft_speed)) || abort_wanted()) return {};
  known.insert(known.end(), read.begin(), read.end());
  if (read.size() < unread.size()) return {read.size(), false};
  if (on_draft) {
    on_draft(tokens, limits.proposals, out);
    return {read.size(), true};
  }
  auto hash = hash_of(held, held.size());
  for (const auto token : tokens.subspan(std::min(tokens.size(), held.size()))) {
    hash = with_token(hash, token);
  }
  for (std::size_t i = 0; i < limits.proposals; ++i) {
    const auto right = next_token(hash, 0);
    const bool wrong = mixed(hash, i) % 100 >= settings_.draft_right_percent;
    out.push_back(wrong ? TokenId{'#'} : right);
    hash = with_token(hash, out.back());
  }
  return {read.size(), true};
}

void FakeEngine::forget_draft(SequenceId sequence) {
  draft_held_[static_cast<std::size_t>(&sequence_of(sequence) - held_.data())].clear();
}

bool FakeEngine::has_token(std::span<const std::vector<TokenId>> inputs,
                           std::optional<TokenId> token) {
  return token && std::any_of(inputs.begin(), inputs.end(), [token](const auto& input) {
           return std::find(input.begin(), input.end(), *token) != input.end();
         });
}

DecodeOutcome FakeEngine::embed(std::span<const std::vector<TokenId>> inputs,
                                std::vector<std::vector<float>>& out, std::string& error) {
  if (facts_.purpose != Purpose::kEmbed) violation("embed() of a model that generates");
  std::size_t tokens = 0;
  for (const auto& input : inputs) {
    if (input.empty()) violation("an empty input");
    tokens += input.size();
  }
  if (tokens > facts_.batch || inputs.size() > facts_.sequences) violation("too large a group");
  const auto outcome = compute(tokens, 0, error);
  if (outcome != DecodeOutcome::kDone) return outcome;
  computed_tokens += tokens;
  if (has_token(inputs, failing_token)) {
    error = "the test says so";
    return DecodeOutcome::kFailed;
  }
  if (has_token(inputs, unusable_token)) {
    out.resize(inputs.size());
    return DecodeOutcome::kDone;
  }
  for (const auto& input : inputs) {
    auto hash = start_of(settings_.seed);
    for (const auto token : input) hash = with_token(hash, token);
    auto& vector = out.emplace_back();
    double square = 0;
    for (std::uint32_t i = 0; i < facts_.embedding_size; ++i) {
      hash = mixed(hash, i + 1);
      const auto number = static_cast<float>((hash >> 20U) % 2001) / 1000.0F - 1.0F;
      vector.push_back(number);
      square += static_cast<double>(number) * static_cast<double>(number);
    }
    const auto length = static_cast<float>(std::sqrt(square));
    if (length > 0) {
      for (auto& number : vector) number /= length;
    }
  }
  return outcome;
}

}  // namespace berth::worker
