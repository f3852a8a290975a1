#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace berth::core {

// Names one waiter; never used again.
using Ticket = std::uint64_t;

// How many wait in all, over every model (M13). Shared by all queues; outlives them.
struct WaitingTotal {
  std::uint32_t limit = 2048;
  std::uint32_t count = 0;
};

enum class WaiterKind : std::uint8_t {
  kClient,    // and operators
  kIdleWork,  // comes after all of them
};

// Those who wait for one model, bounded per model and in all. Tenants take turns, and within one
// the oldest comes first; a tenant that comes anew waits for its turn. A waiter whose load failed
// is *detached*: it waits for the failure's evidence, has no position any more, and still counts.
// Pure. What it costs to add, take or remove one does not grow with the number that waits.
class WaiterQueue {
 public:
  enum class Push : std::uint8_t { kQueued, kModelFull, kTotalFull };

  // `limit`: waiters of this model, detached ones included.
  WaiterQueue(std::uint32_t limit, WaitingTotal& total) : limit_(limit), total_(&total) {}
  WaiterQueue(const WaiterQueue&) = delete;
  WaiterQueue& operator=(const WaiterQueue&) = delete;
  ~WaiterQueue();

  [[nodiscard]] Push push(Ticket ticket, std::string_view tenant = {},
                          WaiterKind kind = WaiterKind::kClient);
  // The next in the queue; pop() takes it out.
  [[nodiscard]] std::optional<Ticket> front() const;
  std::optional<Ticket> pop();
  // A waiter leaves, wherever it is; whether it was there.
  bool remove(Ticket ticket);
  // Everyone who is in the queue, in its order; all become detached.
  std::vector<Ticket> detach_all();

  // 1 = next; absent: detached or not here. Another tenant that comes may move it back.
  [[nodiscard]] std::optional<std::uint32_t> position(Ticket ticket) const;
  // Whether it has a position. Quicker than asking for that.
  [[nodiscard]] bool has_position(Ticket ticket) const { return places_.contains(ticket); }
  // In the queue, in the order in which they are served if nobody comes.
  [[nodiscard]] std::vector<Ticket> tickets() const;
  [[nodiscard]] bool empty() const { return places_.empty(); }
  // In the queue, without those who are detached.
  [[nodiscard]] std::size_t size() const { return places_.size(); }
  // Of those, the ones that are not idle work.
  [[nodiscard]] std::size_t clients() const { return places_.size() - idle_.size(); }
  // All that count for the bound.
  [[nodiscard]] std::size_t counted() const { return places_.size() + detached_.size(); }

 private:
  // Of one tenant, the oldest first; never empty.
  struct Line {
    std::string tenant;
    std::list<Ticket> tickets;
  };
  using Lines = std::list<Line>;
  struct Place {
    Lines::iterator line;  // of idle work: end()
    std::list<Ticket>::iterator at;
  };

  // Out of its line, and of what counts.
  void take_out(std::unordered_map<Ticket, Place>::iterator place);

  std::uint32_t limit_;
  WaitingTotal* total_;
  Lines turns_;  // in the order of their turns
  std::map<std::string, Lines::iterator, std::less<>> lines_;
  std::list<Ticket> idle_;
  std::unordered_map<Ticket, Place> places_;
  std::set<Ticket> detached_;
};

}  // namespace berth::core
