#include "worker/lanes/lane_set.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace berth::worker {
namespace {

// Waiting for another lane pays only where it saves more than a token or two.
constexpr std::size_t kWorthWaiting = 32;
// What a lane loses is wanted again only perhaps; what it takes over is used for certain.
constexpr std::int64_t kLossDivisor = 4;
// Of a chunk's time, where prompts wait.
constexpr double kMostForDrafts = 0.5;

}  // namespace

void LaneSet::open(Engine& engine) {
  engine_ = &engine;
  const auto& facts = engine.facts();
  lanes_.reserve(facts.sequences);
  for (SequenceId id = 0; id < static_cast<SequenceId>(facts.sequences); ++id) {
    lanes_.emplace_back(id, engine);
  }
  leaders_.resize(lanes_.size());
  growth_ = std::max<std::size_t>(1, facts.window / std::max(1U, 2 * facts.sequences));
}

std::size_t LaneSet::busy() const {
  return static_cast<std::size_t>(
      std::count_if(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.busy(); }));
}

bool LaneSet::someone_parked() const {
  return std::any_of(lanes_.begin(), lanes_.end(),
                     [](const Lane& lane) { return lane.busy() && lane.parked(); });
}

std::size_t LaneSet::reserved() const {
  std::size_t cells = 0;
  for (const auto& lane : lanes_) {
    if (lane.busy() && !lane.parked()) cells += lane.reserved();
  }
  return cells;
}

std::size_t LaneSet::free_cells() const {
  const std::size_t cells = engine_->facts().cells;
  return cells - std::min(cells, reserved());
}

std::size_t LaneSet::cells_for(const Job& job) const {
  const std::size_t answer = job.limited() ? job.max_tokens : growth_;
  return std::min(job.prompt.size() + answer, static_cast<std::size_t>(engine_->facts().window));
}

// --- where a job begins

void LaneSet::start(std::unique_ptr<Job> job, SteadyTime now) {
  const auto cells = cells_for(*job);
  auto* source = longest_holder(*job, !engine_->facts().shares_cells);
  auto& place = place_for(*job, source);
  // Its own copy is as good as another's.
  if (source == nullptr || !engine_->facts().shares_cells ||
      place.usable_prefix(*job) == source->usable_prefix(*job)) {
    source = &place;
  }
  const auto already = source->usable_prefix(*job);
  const auto leader = leader_for(*job, already);
  place.begin(std::move(job), *source, cells, ++begun_, now);
  leaders_[index_of(place)] = leader;
}

Lane* LaneSet::longest_holder(const Job& job, bool idle_only) {
  Lane* longest = nullptr;
  std::uint32_t most = 0;
  for (auto& lane : lanes_) {
    if (idle_only && lane.busy()) continue;
    const auto prefix = lane.usable_prefix(job);
    if (prefix > most || (prefix == most && prefix > 0 && longest->busy() && !lane.busy())) {
      longest = &lane;
      most = prefix;
    }
  }
  return longest;
}

Lane& LaneSet::place_for(const Job& job, const Lane* source) {
  const bool shares = engine_->facts().shares_cells && source != nullptr;
  const auto copied = shares ? static_cast<std::int64_t>(source->usable_prefix(job)) : 0;
  Lane* best = nullptr;
  std::int64_t best_gain = 0;
  for (auto& lane : lanes_) {
    if (lane.busy()) continue;
    const auto own = static_cast<std::int64_t>(lane.usable_prefix(job));
    const auto kept = std::max(own, copied);
    auto lost = static_cast<std::int64_t>(lane.held_tokens()) - own;
    // A copy of what an idle lane goes on holding counts twice against the pool.
    if (kept > own && !source->busy()) lost += copied;
    const auto gain = kept - lost / kLossDivisor;
    if (best == nullptr || gain > best_gain ||
        (gain == best_gain && lane.last_used() < best->last_used())) {
      best = &lane;
      best_gain = gain;
    }
  }
  return *best;
}

std::size_t LaneSet::index_of(const Lane& lane) const {
  return static_cast<std::size_t>(&lane - lanes_.data());
}

// --- prefixes that are just being read

LaneSet::Leader LaneSet::leader_for(const Job& job, std::size_t already) const {
  Leader leader;
  if (!engine_->facts().shares_cells) return leader;
  std::size_t longest = already + kWorthWaiting - 1;
  for (const auto& lane : lanes_) {
    if (!lane.reading()) continue;
    const std::size_t prefix = lane.future_prefix(job);
    if (prefix <= longest) continue;
    leader = Leader{&lane, lane.order(), prefix};
    longest = prefix;
  }
  return leader;
}

// A leader is older than who follows it, so there is no ring, and the oldest follows nobody.
bool LaneSet::follows(Lane& lane) {
  auto& leader = leaders_[index_of(lane)];
  if (leader.lane == nullptr) return false;
  auto& ahead = lanes_[index_of(*leader.lane)];
  const bool same_job = ahead.order() == leader.order;
  if (same_job && ahead.reading() && ahead.held_tokens() < leader.prefix) return true;
  if (same_job) lane.take_over(ahead);
  leader = Leader{};
  return false;
}

// --- cells

// Who has only what was promised at the beginning is parked last, where the oldest takes all the
// rest. The oldest goes on in any case, so that somebody always comes to an end.
Lane* LaneSet::next_to_park() {
  std::vector<Lane*> running;
  for (auto& lane : lanes_) {
    if (lane.busy() && !lane.parked()) running.push_back(&lane);
  }
  const auto older = [](const Lane* a, const Lane* b) { return a->order() < b->order(); };
  std::sort(running.begin(), running.end(), older);
  if (running.size() < 2) return nullptr;
  const auto growing = std::find_if(running.rbegin(), std::prev(running.rend()),
                                    [](const Lane* lane) { return lane->grows(); });
  return growing != std::prev(running.rend()) ? *growing : running.back();
}

Lane* LaneSet::oldest_parked() {
  Lane* oldest = nullptr;
  for (auto& lane : lanes_) {
    if (!lane.busy() || !lane.parked()) continue;
    if (oldest == nullptr || lane.order() < oldest->order()) oldest = &lane;
  }
  return oldest;
}

void LaneSet::balance(std::span<const Job* const> waiting) {
  const std::size_t cells = engine_->facts().cells;
  bool grew = false;
  for (auto& lane : lanes_) {
    if (!lane.parked()) grew = lane.grow(growth_) || grew;
  }
  // One lane alone never needs more than a window, and the pool has at least one.
  while (grew && reserved() > cells) {
    auto* const lane = next_to_park();
    if (lane == nullptr) break;
    lane->park();
  }
  for (auto* lane = oldest_parked(); lane != nullptr; lane = oldest_parked()) {
    if (reserved() + lane->reserved() > cells) break;
    lane->unpark();
    if (!engine_->facts().shares_cells) continue;
    if (auto* const holder = longest_holder(lane->job(), false)) lane->take_over(*holder);
  }
  make_room(waiting);
}

void LaneSet::make_room(std::span<const Job* const> waiting) {
  const std::size_t cells = engine_->facts().cells;
  std::size_t used = reserved();
  std::vector<Lane*> idle;
  for (auto& lane : lanes_) {
    if (lane.busy() || lane.held_tokens() == 0) continue;
    used += lane.held_tokens();
    idle.push_back(&lane);
  }
  if (used <= cells) return;
  std::sort(idle.begin(), idle.end(),
            [](const Lane* a, const Lane* b) { return a->last_used() < b->last_used(); });

  std::vector<std::size_t> wanted(lanes_.size(), 0);
  for (const auto* const job : waiting) {
    const auto* const holder = longest_holder(*job, true);
    if (holder == nullptr) continue;
    auto& most = wanted[index_of(*holder)];
    most = std::max<std::size_t>(most, holder->usable_prefix(*job));
  }
  for (const bool spare : {true, false}) {
    for (auto* const lane : idle) {
      if (used <= cells) return;
      const auto held = lane->held_tokens();
      const auto keep = std::max(held - std::min(held, used - cells),
                                 spare ? wanted[index_of(*lane)] : std::size_t{0});
      if (keep >= held) continue;
      lane->trim(keep);
      used -= held - lane->held_tokens();
    }
  }
}

// --- batches

std::size_t LaneSet::fill(std::vector<BatchItem>& batch, const PromptSpeed& speed,
                          const std::function<SteadyTime()>& now) {
  const std::size_t most = engine_->facts().batch;
  generating_.clear();
  reading_.clear();
  shares_.clear();
  bool someone_generates = false;  // or would, if its reader were faster
  std::size_t unread = 0;
  std::size_t shortest = most;
  for (auto& lane : lanes_) {
    if (!lane.busy() || lane.parked()) continue;
    if (lane.generating()) {
      someone_generates = true;
      if (lane.job().sink->has_room()) generating_.push_back(&lane);
    } else if (!follows(lane)) {
      reading_.push_back(&lane);
      shares_.push_back(PromptShare{lane.to_read(), lane.order()});
      unread += lane.to_read();
      shortest = std::min(shortest, lane.to_read());
    }
  }
  // Whose prompt could be read to its end in a chunk shall not wait for a whole batch of others'.
  const bool first_token_near =
      reading_.size() > 1 && speed.known() && shortest <= speed.chunk(most);
  const bool in_chunks = someone_generates || first_token_near;
  auto chunk = in_chunks ? speed.chunk(most) : most;
  const auto drafts_took = fill_generating(batch, most - std::min({chunk, unread, most / 2}), now);
  chunk -= static_cast<std::size_t>(static_cast<double>(chunk) * drafts_took);
  share_chunk(shares_, std::min({chunk, unread, most - batch.size()}));
  std::size_t read = 0;
  for (std::size_t i = 0; i < reading_.size(); ++i) {
    if (shares_[i].share == 0) continue;
    reading_[i]->read(batch, shares_[i].share);
    read += shares_[i].share;
  }
  return read;
}

// One token of each comes before any proposal. `room` bounds what is added unless the tokens alone
// are more.
double LaneSet::fill_generating(std::vector<BatchItem>& batch, std::size_t room,
                                const std::function<SteadyTime()>& now) {
  const std::size_t most = engine_->facts().batch;
  if (generating_.size() > most) {
    // Cannot be where a batch holds a token of every sequence; then the oldest go first.
    std::sort(generating_.begin(), generating_.end(),
              [](const Lane* a, const Lane* b) { return a->order() < b->order(); });
    generating_.resize(most);
  }
  if (engine_->facts().draft_tokens == 0) {
    for (auto* const lane : generating_) lane->generate(batch);
    return 0;
  }
  const auto whole = draft_speed_.chunk(most);
  // What there is to share is not always the same lanes'.
  if (!generating_.empty()) {
    const auto first = turns_++ % generating_.size();
    std::rotate(generating_.begin(), generating_.begin() + static_cast<std::ptrdiff_t>(first),
                generating_.end());
  }
  DraftLimits limits;
  limits.read = reading_.empty() ? whole : (whole + 1) / 2;
  limits.proposals = room - std::min(room, generating_.size());
  std::size_t caught_up_on = 0;
  for (auto* const lane : generating_) {
    const auto before = batch.size();
    const bool behind = lane->draft_behind();
    const auto began = now();
    const auto step = lane->generate(batch, limits);
    limits.proposals -= batch.size() - before - 1;
    // Where it has proposed as well, the time says nothing about reading.
    if (!step.caught_up && step.read > 0) draft_speed_.add(step.read, now() - began);
    if (!behind && step.caught_up) continue;
    limits.read -= std::min(limits.read, step.read);
    caught_up_on += step.read;
  }
  const auto part = static_cast<double>(caught_up_on) / static_cast<double>(whole);
  return std::min(part, reading_.empty() ? 1.0 : kMostForDrafts);
}

}  // namespace berth::worker
