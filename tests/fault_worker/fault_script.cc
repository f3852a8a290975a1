#include "tests/fault_worker/fault_script.h"

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include "common/units.h"

namespace berth::fault {
namespace {

constexpr std::uint64_t kMostFlood = 2ULL << 30U;
constexpr std::uint64_t kMostLeak = 4ULL << 30U;
constexpr std::uint64_t kMostRate = 1ULL << 40U;
constexpr std::uint64_t kMostChildren = 64;
constexpr std::uint64_t kMostTokens = 1'000'000;
constexpr std::size_t kScriptBytes = 1UL << 20U;
constexpr std::string_view kBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// Takes the next word off `text`.
std::string_view next_word(std::string_view& text) {
  text = trimmed(text);
  const auto end = std::min(text.find_first_of(kBlanks), text.size());
  const auto word = text.substr(0, end);
  text = trimmed(text.substr(end));
  return word;
}

template <typename Number>
bool read_number(std::string_view word, Number& out, Number most) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out);
  return error == std::errc{} && end == word.data() + word.size() && out <= most;
}

bool read_bytes(std::string_view word, std::uint64_t& out, std::uint64_t most) {
  const auto bytes = parse_bytes(word);
  if (!bytes || *bytes == 0 || *bytes > most) return false;
  out = *bytes;
  return true;
}

bool read_time(std::string_view word, Duration& out) {
  const auto time = parse_duration(word);
  if (!time) return false;
  out = *time;
  return true;
}

bool read_switch(std::string_view word, bool& out) {
  out = word == "on";
  return word == "on" || word == "off";
}

std::optional<std::string> unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (++i >= text.size()) return std::nullopt;
    static const std::map<char, char> kPlain = {{'n', '\n'},   {'r', '\r'}, {'t', '\t'},
                                                {'e', '\x1b'}, {'0', '\0'}, {'\\', '\\'}};
    if (const auto plain = kPlain.find(text[i]); plain != kPlain.end()) {
      out += plain->second;
      continue;
    }
    unsigned value = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] != 'x' || text.size() - i < 3) return std::nullopt;
    const auto [end, error] = std::from_chars(digits, digits + 2, value, 16);
    if (error != std::errc{} || end != digits + 2) return std::nullopt;
    out += static_cast<char>(value);
    i += 2;
  }
  return out;
}

bool read_text(std::string_view rest, Order& order) {
  auto text = unescaped(rest);
  if (!text || text->empty()) return false;
  order.text = std::move(*text);
  return true;
}

bool read_file_name(std::string_view rest, Order& order) {
  order.name = rest;
  return rest.starts_with('/');
}

bool read_spawn(std::string_view rest, Order& order) {
  if (!read_number(next_word(rest), order.number, kMostChildren)) return false;
  while (!rest.empty()) {
    const auto word = next_word(rest);
    order.ignores_term = order.ignores_term || word == "ignore-term";
    order.own_session = order.own_session || word == "session";
    order.orphan = order.orphan || word == "orphan";
    if (word != "ignore-term" && word != "session" && word != "orphan") return false;
  }
  return true;
}

bool read_setting(std::string_view rest, Order& order) {
  order.name = next_word(rest);
  if (order.name == "text") return read_text(rest, order);
  if (order.name == "token-every") return read_time(rest, order.time);
  constexpr std::array<std::string_view, 3> kNumbers = {"tokens", "window", "sequences"};
  return std::ranges::find(kNumbers, order.name) != kNumbers.end() &&
         read_number(rest, order.number, kMostTokens) && order.number > 0;
}

struct Form {
  OrderKind kind;
  std::string_view usage;
  // Reads what stands behind the order's name.
  std::function<bool(std::string_view, Order&)> read;
};

bool nothing(std::string_view rest, Order& /*order*/) {
  return rest.empty();
}

const std::map<std::string_view, Form>& process_forms() {
  using K = OrderKind;
  using S = std::string_view;
  static const auto* const forms = new std::map<S, Form>{
      {"exit",
       {K::kExit, "exit STATUS",
        [](S r, Order& o) { return read_number<std::uint64_t>(r, o.number, 255); }}},
      {"signal",
       {K::kSignal, "signal NAME",
        [](S r, Order& o) {
          const auto number = signal_number(r);
          o.number = static_cast<std::uint64_t>(number.value_or(0));
          return number.has_value();
        }}},
      {"print", {K::kPrint, "print TEXT", &read_text}},
      {"print-out", {K::kPrintOut, "print-out TEXT", &read_text}},
      {"log", {K::kLog, "log /FILE", &read_file_name}},
      {"flood",
       {K::kFlood, "flood BYTES",
        [](S r, Order& o) { return read_bytes(r, o.number, kMostFlood); }}},
      {"sleep", {K::kSleep, "sleep TIME", [](S r, Order& o) { return read_time(r, o.time); }}},
      {"wait", {K::kWait, "wait /FILE", &read_file_name}},
      {"touch", {K::kTouch, "touch /FILE", &read_file_name}},
      {"stall", {K::kStall, "stall", &nothing}},
      {"read",
       {K::kRead, "read BYTES_PER_SECOND TIME",
        [](S r, Order& o) {
          return read_bytes(next_word(r), o.rate, kMostRate) && read_time(r, o.time);
        }}},
      {"burn",
       {K::kBurn, "burn PERCENT TIME",
        [](S r, Order& o) {
          return read_number<std::uint64_t>(next_word(r), o.number, 100) && read_time(r, o.time);
        }}},
      {"leak",
       {K::kLeak, "leak BYTES_PER_SECOND BYTES",
        [](S r, Order& o) {
          return read_bytes(next_word(r), o.rate, kMostRate) && read_bytes(r, o.number, kMostLeak);
        }}},
      {"spawn", {K::kSpawn, "spawn COUNT [ignore-term] [session] [orphan]", &read_spawn}},
      {"ignore-term", {K::kIgnoreTerm, "ignore-term", &nothing}},
      {"ignore-stdin", {K::kIgnoreStdin, "ignore-stdin", &nothing}},
  };
  return *forms;
}

const std::map<std::string_view, Form>& protocol_forms() {
  using K = OrderKind;
  using S = std::string_view;
  static const auto* const forms = new std::map<S, Form>{
      {"progress",
       {K::kProgress, "progress PHASE FRACTION",
        [](S r, Order& o) {
          o.name = next_word(r);
          const auto [end, error] = std::from_chars(r.data(), r.data() + r.size(), o.fraction);
          return error == std::errc{} && end == r.data() + r.size() && std::isfinite(o.fraction);
        }}},
      {"fail",
       {K::kFail, "fail CLASS REASON",
        [](S r, Order& o) {
          o.name = next_word(r);
          return !o.name.empty() && read_text(r, o);
        }}},
      {"ready", {K::kReady, "ready", &nothing}},
      {"close-control", {K::kCloseControl, "close-control", &nothing}},
      {"heartbeats",
       {K::kHeartbeats, "heartbeats on|off", [](S r, Order& o) { return read_switch(r, o.on); }}},
      {"freeze", {K::kFreeze, "freeze on|off", [](S r, Order& o) { return read_switch(r, o.on); }}},
      {"say",
       {K::kSay, "say COUNT", [](S r, Order& o) { return read_number(r, o.number, kMostTokens); }}},
      {"hold", {K::kHold, "hold", &nothing}},
      {"set", {K::kSet, "set text|tokens|token-every|window|sequences VALUE", &read_setting}},
  };
  return *forms;
}

const Form* find_form(std::string_view name) {
  for (const auto* forms : {&process_forms(), &protocol_forms()}) {
    if (const auto form = forms->find(name); form != forms->end()) return &form->second;
  }
  return nullptr;
}

// Takes "load:" off the front of a line.
std::optional<Phase> take_phase(std::string_view& line) {
  static constexpr std::array<std::pair<std::string_view, Phase>, kPhases> kNames = {{
      {"start:", Phase::kStart},
      {"load:", Phase::kLoad},
      {"ready:", Phase::kReady},
      {"request:", Phase::kRequest},
      {"term:", Phase::kTerm},
  }};
  for (const auto& [name, phase] : kNames) {
    if (!line.starts_with(name)) continue;
    line = trimmed(line.substr(name.size()));
    return phase;
  }
  return std::nullopt;
}

}  // namespace

Result<Script> parse_script(std::string_view text) {
  Script script;
  Phase phase = Phase::kLoad;
  int number = 0;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    auto line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    if (const auto named = take_phase(line)) phase = *named;
    if (line.empty()) continue;
    Order order;
    order.line = number;
    if (line.starts_with('&')) {
      order.beside = true;
      line = trimmed(line.substr(1));
    }
    const auto name = next_word(line);
    const Form* const form = find_form(name);
    const std::string where = "line " + std::to_string(number) + ": ";
    if (form == nullptr) {
      return fail(Reason::kInvalidArgument,
                  where + "there is no order \"" + std::string(name) + "\".");
    }
    order.kind = form->kind;
    if (!form->read(line, order)) {
      return fail(Reason::kInvalidArgument, where + "expected: " + std::string(form->usage));
    }
    const bool answers = order.kind == OrderKind::kSay || order.kind == OrderKind::kHold;
    if (answers && phase != Phase::kRequest) {
      return fail(Reason::kInvalidArgument,
                  where + std::string(name) + " is an order for requests.");
    }
    script.phases[static_cast<std::size_t>(phase)].push_back(std::move(order));
  }
  return script;
}

std::optional<std::string> find_script(const std::string& model) {
  const auto read = [](const std::string& path) -> std::optional<std::string> {
    std::ifstream file(path, std::ios::binary);
    if (!file) return std::nullopt;
    std::string text(kScriptBytes, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    return text;
  };
  if (auto own = read(model + ".fault")) return own;
  const auto text = read(model);
  if (!text) return std::nullopt;
  const auto begin = text->find(kScriptBegin);
  if (begin == std::string::npos) return std::nullopt;
  std::string_view script = std::string_view(*text).substr(begin);
  script = script.substr(0, script.find('\0'));
  if (const auto end = script.find("\n" + std::string(kScriptEnd)); end != std::string::npos) {
    script = script.substr(0, end);
  }
  return std::string(script);
}

std::optional<int> signal_number(std::string_view name) {
  int number = 0;
  if (read_number(name, number, 64)) return number > 0 ? std::optional(number) : std::nullopt;
  if (name.starts_with("SIG")) name.remove_prefix(3);
  for (number = 1; number < NSIG; ++number) {
    const char* const abbreviation = ::sigabbrev_np(number);
    if (abbreviation != nullptr && name == abbreviation) return number;
  }
  return std::nullopt;
}

}  // namespace berth::fault
