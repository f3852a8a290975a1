#include "supervisor/cli/format/memory_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/text.h"
#include "common/units.h"

namespace berth::cli {
namespace {

constexpr std::size_t kNameBytes = 128;

template <typename Amounts>
std::string listed(const Amounts& amounts, const auto& bytes_of) {
  std::string text;
  for (const auto& amount : amounts) {
    text += (text.empty() ? "" : " and ") + format_bytes(bytes_of(amount)) + " of " +
            printable_line(amount.domain(), kNameBytes);
  }
  return text.empty() ? "-" : text;
}

struct Part {
  char sign;
  std::uint64_t bytes;
};

}  // namespace

std::string amounts_text(const google::protobuf::RepeatedPtrField<v1::DomainAmount>& amounts) {
  return listed(amounts, [](const v1::DomainAmount& one) { return one.bytes(); });
}

std::string charge_text(const google::protobuf::RepeatedPtrField<v1::DomainCharge>& charge) {
  return listed(charge, [](const v1::DomainCharge& one) { return one.bytes(); });
}

std::string basis_text(const v1::DomainCharge& charge) {
  if (!charge.has_weights()) return {};
  const std::array<std::pair<const char*, const v1::ChargeTerm*>, 4> terms = {
      {{"weights", &charge.weights()},
       {"KV", &charge.kv()},
       {"working", &charge.working()},
       {"overhead", &charge.overhead()}}};
  std::vector<std::pair<std::string, std::string>> bases;  // with the terms of each
  for (const auto& [name, term] : terms) {
    if (term->bytes() == 0) continue;
    const std::string basis = printable_line(term->basis(), 32);
    const auto found = std::ranges::find(bases, basis, &std::pair<std::string, std::string>::first);
    if (found == bases.end()) {
      bases.emplace_back(basis, name);
    } else {
      found->second += std::string(", ") + name;
    }
  }
  std::string text;
  for (const auto& [basis, names] : bases) {
    text += text.empty() ? "" : "; ";
    text += bases.size() == 1 ? basis : names + " " + basis;
  }
  if (charge.error_bytes() > 0) text += " ± " + format_bytes(charge.error_bytes());
  return text;
}

std::string memory_bar(const v1::DomainState& domain, std::size_t columns) {
  const v1::ChargeParts& charged = domain.charged();
  const std::uint64_t total = domain.total_bytes();
  std::vector<Part> parts = {{'w', charged.weights_bytes()}, {'k', charged.kv_bytes()},
                             {'c', charged.working_bytes()}, {'o', charged.overhead_bytes()},
                             {'b', domain.bank_bytes()},     {'.', domain.available_bytes()},
                             {'f', domain.foreign_bytes()}};
  std::uint64_t sum = 0;
  for (const Part& part : parts) sum += part.bytes;
  parts.insert(parts.end() - 1, {'-', total > sum ? total - sum : 0});
  const double whole = static_cast<double>(std::max(total, sum));
  if (whole <= 0 || columns == 0) return {};
  std::string bar;
  double before = 0;
  for (const Part& part : parts) {
    if (part.bytes == 0) continue;
    before += static_cast<double>(part.bytes);
    const auto end = static_cast<std::size_t>(before / whole * static_cast<double>(columns) + 0.5);
    bar.append(std::max<std::size_t>(end > bar.size() ? end - bar.size() : 0, 1), part.sign);
  }
  // Small parts have taken what the largest gives.
  while (bar.size() > columns) {
    const auto longest = std::ranges::max_element(
        parts, {}, [&](const Part& part) { return std::ranges::count(bar, part.sign); });
    bar.erase(bar.find(longest->sign), 1);
  }
  return bar;
}

std::string waits_for_text(const std::string& waits_for) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kWords = {
      {{"leaving", "models that are being stopped"},
       {"closing", "models that finish what runs on them"},
       {"grace", "models that were used a moment ago"},
       {"clients", "models that clients use"},
       {"older_waiter", "somebody who came before"},
       {"foreign_use", "programs that are not berth's"},
       {"idle_room", "room without an eviction"},
       {"idle_work", "the server's own work, which yields"},
       {"check", "a look at its files"}}};
  for (const auto& [name, words] : kWords) {
    if (name == waits_for) return std::string(words);
  }
  return waits_for.empty() ? "memory" : printable_line(waits_for, 64);
}

}  // namespace berth::cli
