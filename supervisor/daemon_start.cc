#include "supervisor/daemon_program.h"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/event.h"
#include "common/version.h"
#include "supervisor/admin/resident_memory.h"
#include "supervisor/tree_memory.h"

namespace berth {
namespace {

constexpr Duration kMemoryAge = std::chrono::seconds(1);  // of what the state shows

std::string join(const std::vector<std::string>& parts) {
  std::string joined;
  for (const std::string& part : parts) joined += (joined.empty() ? "" : ",") + part;
  return joined;
}

}  // namespace

// The loop runs from here on.
void Daemon::begin() {
  signals_.async_wait([this](boost::system::error_code failed, int signal) {
    if (!failed) on_signal(signal);
  });
  monitor_.emplace(clock_, [this] { tick(); });
  keys_.emplace(KeyKeeper::Parts{.clock = clock_,
                                 .events = *events_,
                                 .run_blocking = run_blocking_,
                                 .on_readable = readable_on(io_),
                                 .authenticator = authenticator_,
                                 .limits = limits_,
                                 .on_changed = [this] { callers_->changed(); }});
  // L4: what an earlier run left behind goes before anything is loaded.
  cleaner_->start([this] {
    memory_->keeper().start([this] { on_part_known(); });
    // The store answers in order: before restore_failures(), for which there is a deadline.
    measured_->begin();
    catalog_->start([this] { programs_->start([this] { on_part_known(); }); });
  });
}

// Memory and models are found side by side.
void Daemon::on_part_known() {
  if (--unknown_parts_ > 0) return;
  residency_->restore_failures([this] { keys_->use(config_->auth, [this] { listen(); }); });
}

void Daemon::listen() {
  if (stopping_) return;
  state_.emplace(
      admin::ServerState{.services = services(),
                         .store = *store_,
                         .events = *events_,
                         .callers = callers_,
                         .config = config_,
                         .started = clock_.wall_now(),
                         .http = {},
                         .grpc = {},
                         .state = [this] { return std::string(stopping_ ? "draining" : "ready"); },
                         .degraded = [this] { return degraded(); },
                         .loop_lag = [this] { return monitor_->worst_lag(); },
                         .process_memory = process_memory,
                         .tree_memory = admin::remembered(clock_, kMemoryAge, tree_memory),
                         .domains = [this] { return memory_->keeper().shown(); },
                         .load_ratios = [this] { return measured_->ratios(); },
                         .on_readable = readable_on(io_),
                         .run_blocking = run_blocking_,
                         .pressure = [this] { return std::optional(memory_->keeper().pressure()); },
                         .memory_problems = [this] { return memory_->keeper().problems(); }});
  fronts_.emplace(Fronts::Parts{.state = *state_,
                                .metrics = *metrics_,
                                .authenticator = authenticator_,
                                .limits = limits_,
                                .demo = !options_.demo_dir.empty(),
                                .ready = [this] { return ready_.load(); }});
  if (const Status listening = fronts_->open(); !listening) {
    failure_ = listening.error();
    return stop("failed start");
  }
  ready_ = true;
  events_->emit_typed(events::ServerListening{.http = state_->http.empty() ? "-" : state_->http,
                                              .grpc = join(state_->grpc),
                                              .pid = getpid(),
                                              .version = std::string(kVersion)});
  if (config_->server.tls_cert.empty()) {
    for (const std::string& address : catalog::open_addresses(config_->server)) {
      events_->emit_typed(events::ServerExposed{.address = address});
    }
  }
  if (!config_->ignored.empty()) {
    events_->emit_typed(
        events::ConfigIgnored{.settings = static_cast<std::int64_t>(config_->ignored.size()),
                              .keys = ignored_keys(),
                              .file = config_->file});
  }
  look_for_devices();
  systemd::notify_ready();
  show_status();
  if (std::exchange(reload_wanted_, false)) reload();
}

residency::Services Daemon::services() {
  residency::Services made{
      clock_, ids_, *events_, *residency_, [this] { return catalog_->snapshot(); }, *requests_};
  made.run_blocking = run_blocking_;
  return made;
}

}  // namespace berth
