#include "supervisor/daemon_program.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/durations.h"
#include "common/event.h"
#include "common/text.h"
#include "supervisor/config_reload.h"

namespace berth {
namespace {

constexpr auto kGrpcEnd = std::chrono::milliseconds(1000);
constexpr Duration kStatusPeriod = std::chrono::seconds(5);

}  // namespace

void Daemon::on_signal(int signal) {
  signals_.async_wait([this](boost::system::error_code failed, int next) {
    if (!failed) on_signal(next);
  });
  if (signal == SIGHUP) return reload();
  if (stopping_) {
    // Asked twice: no more waiting for streams.
    residency_->shutdown(Duration::zero(), [] {});
    return;
  }
  stop(signal == SIGINT ? "SIGINT" : "SIGTERM");
}

// L23: what of the file can change while serving takes effect with the next load of each model.
void Daemon::reload() {
  if (!ready_ || rereading_) {
    reload_wanted_ = true;
    return;
  }
  rereading_ = true;
  run_blocking_([this] {
    auto read = std::make_shared<catalog::ConfigResult>(read_config(options_));
    clock_.post([this, read] { take_config(std::move(*read)); });
  });
}

void Daemon::take_config(catalog::ConfigResult read) {
  rereading_ = false;
  ConfigReload reloaded = reload_config(*config_, std::move(read));
  config_problem_.clear();
  if (!reloaded.config) {
    config_problem_ = "The configuration stays as it was: " + reloaded.problem;
  } else if (!reloaded.unapplied.empty()) {
    config_problem_ =
        "These settings take a restart of berthd: " + join_names(reloaded.unapplied) + ".";
  }
  if (!config_problem_.empty()) {
    events_->emit_typed(events::ServerDegraded{.part = "config", .problem = config_problem_});
  }
  if (reloaded.config) {
    config_ = std::move(reloaded.config);
    state_->config = config_;
    catalog_->use(config_);
    residency_->use_waits(limits_of(*config_));
  }
  catalog_->rescan();
  drivers_->look();
  memory_->keeper().use(config_->memory.budgets);
  keys_->use(config_->auth);
  if (std::exchange(reload_wanted_, false)) reload();
}

void Daemon::tick() {
  const SteadyTime now = clock_.now();
  if (watchdog_ && now - watchdog_fed_ >= *watchdog_ / 2) {
    watchdog_fed_ = now;
    systemd::notify_watchdog();
  }
  if (ready_ && now - status_shown_ >= kStatusPeriod) show_status();
}

void Daemon::show_status() {
  status_shown_ = clock_.now();
  const std::string status = std::to_string(catalog_->snapshot()->models().size()) + " models, " +
                             std::to_string(residency_->instances().size()) + " resident";
  if (std::exchange(status_, status) != status) systemd::notify_status(status);
}

std::vector<std::string> Daemon::degraded() {
  std::vector<std::string> problems = catalog_->problems();
  if (!config_->ignored.empty()) {
    problems.push_back("This version does not use " + ignored_keys() + ", set in " + config_->file +
                       ".");
  }
  if (keys_) std::ranges::move(keys_->problems(), std::back_inserter(problems));
  if (!cgroup_problem_.empty()) problems.push_back(cgroup_problem_);
  if (!config_problem_.empty()) problems.push_back(config_problem_);
  std::ranges::move(memory_->keeper().problems(), std::back_inserter(problems));
  std::ranges::move(unplaced_->sentences(), std::back_inserter(problems));
  return problems;
}

std::string Daemon::ignored_keys() const {
  std::vector<std::string> keys;
  for (const catalog::Setting& setting : config_->ignored) keys.push_back(setting.key);
  return join_names(keys);
}

// --- End (L29).
void Daemon::stop(const std::string& cause) {
  stopping_ = true;
  ready_ = false;
  systemd::notify_stopping();
  std::int64_t active = 0;
  for (const auto& instance : residency_->instances()) active += instance.active;
  events_->emit_typed(events::ServerStopping{.cause = cause, .active_requests = active});
  stop_began_ = clock_.now();
  if (fronts_) fronts_->drain();
  check_->stop();
  residency_->shutdown(failure_ ? Duration::zero() : Duration(config_->server.drain_timeout),
                       [this] { end_fronts(); });
}

void Daemon::end_fronts() {
  run_blocking_([this] {
    if (fronts_) fronts_->end_calls(kGrpcEnd);
    clock_.post([this] {
      if (fronts_) fronts_->close();
      events_->emit_typed(
          events::ServerStopped{.took_ms = whole_milliseconds(clock_.now() - stop_began_)});
      io_.stop();
    });
  });
}

}  // namespace berth
