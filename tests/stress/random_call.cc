#include "tests/stress/random_call.h"

#include <boost/json.hpp>
#include <charconv>
#include <limits>

#include "tests/stress/random_chat.h"
#include "tests/stress/random_grammar.h"
#include "tests/stress/random_sampling.h"
#include "tests/stress/random_schema.h"
#include "tests/stress/random_text.h"

namespace berth::stress {
namespace {

Random random_of(const Place& place, std::uint64_t purpose) {
  Random seed(place.seed);
  Random thread(seed.next() ^ (place.thread * 4 + purpose));
  return Random(thread.next() ^ place.number);
}

template <typename Ids>
void add_ids(Random& random, std::uint64_t most, std::uint32_t vocabulary, Ids& ids) {
  const auto count = any_size(random, 0, most);
  const auto again = static_cast<std::int32_t>(random.below(vocabulary));
  const bool same = random.percent(10);
  for (std::uint64_t i = 0; i < count; ++i) {
    ids.Add(same ? again : static_cast<std::int32_t>(random.below(vocabulary)));
  }
}

template <typename Ids>
void add_bad_id(Random& random, std::uint32_t vocabulary, Ids& ids) {
  ids.Add(one_of<std::int32_t>(
      random, {-1, static_cast<std::int32_t>(vocabulary), std::numeric_limits<std::int32_t>::max(),
               std::numeric_limits<std::int32_t>::min()}));
}

void add_input(Random& random, const Target& target, v1::GenerateRequest& request) {
  switch (random.below(3)) {
    case 0:
      request.set_prompt(text_of_any_length(random));
      break;
    case 1:
      *request.mutable_chat() = random_chat(random);
      break;
    default: {
      const std::uint64_t most = random.percent(10) ? 2ULL * target.window : 60;
      auto& ids = *request.mutable_tokens()->mutable_ids();
      // Mostly not the only token that many have in front.
      if (random.percent(70)) ids.Add(static_cast<std::int32_t>(1 % target.vocabulary));
      add_ids(random, most, target.vocabulary, ids);
    }
  }
}

void add_stops(Random& random, v1::GenerateRequest& request) {
  const auto count = random.percent(90) ? random.between(1, 3) : 16;
  for (std::uint64_t i = 0; i < count; ++i) {
    auto text = random.percent(50)
                    ? std::string(one_text(random, {".", " ", "e", "\n", "}", "is", "am ", "you"}))
                    : random_text(random, any_size(random, 1, random.percent(5) ? 1000 : 12));
    if (text.empty() || text.size() > 1024) text = "x";
    request.add_stop(text);
  }
}

void add_format(Random& random, const Target& target, v1::GenerateRequest& request) {
  auto& format = *request.mutable_format();
  switch (random.below(4)) {
    case 0:
      format.set_json_object(true);
      break;
    case 1:
      format.set_grammar(random_grammar(random, {target.vocabulary, target.ambiguous_grammars}));
      break;
    default:
      format.set_json_schema(boost::json::serialize(random_schema(random, 3)));
  }
}

void add_limit(Random& random, v1::GenerateRequest& request) {
  switch (random.below(64)) {
    case 0:
      break;
    case 1:
      request.set_max_tokens(0);
      break;
    case 2:
      request.set_max_tokens(static_cast<std::uint32_t>(any_size(random, 0, ~std::uint32_t{0})));
      break;
    case 3:
      request.set_max_tokens(~std::uint32_t{0});
      break;
    default:
      request.set_max_tokens(static_cast<std::uint32_t>(random.between(1, 80)));
  }
}

// So that an answer in a form is not only begun.
void let_it_end(Random& random, v1::GenerateRequest& request) {
  request.clear_stop();
  request.set_max_tokens(static_cast<std::uint32_t>(random.between(200, 500)));
  auto& sampling = *request.mutable_sampling();
  sampling.clear_logit_bias();
  sampling.clear_ignore_eos();
}

// Makes one thing wrong. Returns which.
std::string spoil(Random& random, const Target& target, v1::GenerateRequest& request) {
  switch (random.below(8)) {
    case 0:
      request.clear_input();
      return "input";
    case 1:
      request.set_prompt(broken_text(random));
      return "prompt";
    case 2:
      add_bad_id(random, target.vocabulary, *request.mutable_tokens()->mutable_ids());
      return "tokens.ids";
    case 3:
      request.add_stop(one_of<std::string>(
          random, {"", "\xff", std::string(1025, 'x'), std::string(1U << 20U, 'x')}));
      return "stop";
    case 4:
      request.set_top_logprobs(static_cast<std::uint32_t>(any_size(random, 21, ~std::uint32_t{0})));
      return "top_logprobs";
    case 5:
      if (random.percent(50)) {
        request.mutable_format()->set_json_schema(broken_schema(random));
      } else {
        request.mutable_format()->set_grammar(
            broken_grammar(random, {target.vocabulary, target.ambiguous_grammars}));
      }
      return "format";
    case 6:
      if (!request.has_chat()) *request.mutable_chat() = random_chat(random);
      spoil_chat(random, *request.mutable_chat());
      return "chat";
    default:
      spoil_sampling(random, target.vocabulary, *request.mutable_sampling());
      return "sampling";
  }
}

GenerateCall random_generate(Random& random, const Target& target) {
  GenerateCall call;
  auto& request = call.request;
  add_input(random, target, request);
  *request.mutable_sampling() = random_sampling(random, target.vocabulary);
  add_limit(random, request);
  if (random.percent(25)) add_stops(random, request);
  const bool has_tools = request.has_chat() && !request.chat().tools_json().empty();
  if (random.percent(has_tools ? 5 : 30)) add_format(random, target, request);
  if ((has_tools || request.has_format()) && random.percent(60)) let_it_end(random, request);
  if (random.percent(30)) {
    request.set_top_logprobs(static_cast<std::uint32_t>(random.below(21)));
  }
  if (random.percent(40)) {
    request.set_cache_scope(one_of<std::string>(random, {"a", "b", "c", std::string(256, 'd')}));
  }
  if (random.percent(10)) {
    request.set_deadline_ms(random.percent(10) ? random.next() : any_size(random, 0, 3000));
  }
  if (random.percent(15)) call.wrong = spoil(random, target, request);
  return call;
}

EmbedCall random_embed(Random& random, const Target& target) {
  EmbedCall call;
  auto& request = call.request;
  const auto count = any_size(random, random.percent(5) ? 0 : 1, random.percent(3) ? 2100 : 12);
  for (std::uint64_t i = 0; i < count; ++i) {
    auto& input = *request.add_inputs();
    if (random.percent(70)) {
      auto text = random_text(random, any_size(random, 1, random.percent(3) ? 100'000 : 60));
      input.set_text(text.empty() && !random.percent(3) ? "x" : text);
    } else if (!random.percent(2)) {
      auto& ids = *input.mutable_tokens()->mutable_ids();
      add_ids(random, random.percent(5) ? target.window * 2ULL : 40, target.vocabulary, ids);
      if (ids.empty() && !random.percent(3)) ids.Add(0);
      if (random.percent(1)) add_bad_id(random, target.vocabulary, ids);
    }
  }
  if (random.percent(2)) request.add_inputs()->set_text(broken_text(random));
  if (random.percent(30)) request.set_normalize(random.percent(50));
  if (random.percent(30)) {
    request.set_dimensions(static_cast<std::uint32_t>(
        any_size(random, random.percent(5) ? 0 : 1,
                 random.percent(90) ? target.embedding_size + 1ULL : ~std::uint32_t{0})));
  }
  if (random.percent(10)) request.set_deadline_ms(any_size(random, 0, 1000));
  return call;
}

TokenizeCall random_tokenize(Random& random) {
  TokenizeCall call;
  auto& request = call.request;
  if (random.percent(20)) {
    *request.mutable_chat() = random_chat(random);
    if (random.percent(20)) spoil_chat(random, *request.mutable_chat());
  } else if (!random.percent(3)) {
    request.set_text(random.percent(5) ? broken_text(random) : text_of_any_length(random));
  }
  if (random.percent(50)) request.set_parse_special(random.percent(50));
  if (random.percent(50)) request.set_add_special(random.percent(50));
  return call;
}

DetokenizeCall random_detokenize(Random& random, const Target& target) {
  DetokenizeCall call;
  auto& ids = *call.request.mutable_ids();
  add_ids(random, random.percent(3) ? 200'000 : 100, target.vocabulary, ids);
  if (random.percent(10)) add_bad_id(random, target.vocabulary, ids);
  call.request.set_show_control(random.percent(50));
  return call;
}

Manners random_manners(Random& random) {
  Manners manners;
  if (random.percent(8)) manners.deadline = Milliseconds(any_size(random, 1, 2000));
  if (random.percent(15)) manners.cancel_after = Milliseconds(any_size(random, 0, 700));
  if (random.percent(6)) {
    manners.pause = Milliseconds(any_size(random, 1, 300));
    manners.pauses = static_cast<std::uint32_t>(random.between(1, 6));
  }
  return manners;
}

}  // namespace

Call random_call(const Place& place, const Target& target) {
  auto random = random_of(place, 0);
  Call call;
  call.id = std::to_string(place.seed) + "." + std::to_string(place.thread) + "." +
            std::to_string(place.number);
  call.manners = random_manners(random);
  const auto kind = random.below(100);
  if (kind < 12 && target.canaries > 0) {
    call.what =
        CanaryCall{random.below(target.canaries), one_of<std::string>(random, {"", "a", "b", "e"})};
    call.manners = {};
  } else if (kind < 82) {
    // Where a model does not do it, it is refused; a few of those will do.
    if (target.generates || kind < 20) {
      auto generate = random_generate(random, target);
      generate.request.set_request_id(call.id);
      call.what = std::move(generate);
    } else {
      call.what = random_embed(random, target);
    }
  } else if (kind < 84) {
    call.what = random_embed(random, target);
  } else if (kind < 93) {
    call.what = random_tokenize(random);
  } else {
    call.what = random_detokenize(random, target);
  }
  return call;
}

std::optional<Place> place_of(std::string_view text, std::uint64_t seed) {
  const auto dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto read = [](std::string_view part, std::uint64_t& number) {
    const auto [end, failure] = std::from_chars(part.data(), part.data() + part.size(), number);
    return failure == std::errc() && end == part.data() + part.size();
  };
  Place place{seed, 0, 0};
  if (!read(text.substr(0, dot), place.thread)) return std::nullopt;
  if (!read(text.substr(dot + 1), place.number)) return std::nullopt;
  return place;
}

std::uint64_t calls_at_once(const Place& place) {
  auto random = random_of(place, 1);
  if (random.percent(1)) return random.between(20, 60);
  return random.percent(12) ? random.between(2, 12) : 1;
}

}  // namespace berth::stress
