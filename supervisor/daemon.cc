#include "supervisor/daemon.h"

#include <csignal>
#include <cstdio>
#include <memory>
#include <utility>

#include "common/event.h"
#include "supervisor/daemon_program.h"

namespace berth {

CoreStrand& core_strand() {
  static auto* const strand = new CoreStrand;
  return *strand;
}

int Daemon::run() {
  const Status prepared = prepare();
  if (prepared) {
    clock_.post([this] { begin(); });
    io_.run();
  } else {
    failure_ = prepared.error();
  }
  close();
  if (!failure_) return 0;
  std::fprintf(stderr, "berthd: %s\n", failure_->message.c_str());
  return 1;
}

Status Daemon::prepare() {
  Result<DaemonGround> ground = prepare_ground(config_->server, !options_.demo_dir.empty());
  if (!ground) return fail(ground.error());
  ground_.emplace(*std::move(ground));
  return open_outlets();
}

Status Daemon::open_outlets() {
  Result<std::unique_ptr<LogWriter>> log = LogWriter::start({.format = options_.log_format});
  if (!log) return fail(log.error());
  log_ = *std::move(log);
  early_log_.emplace(*log_);
  store::StoreOptions store_options;
  store_options.path = config_->server.state_dir + "/state.db";
  store_options.on_degraded = [this](events::ServerDegraded event) {
    if (events_) events_->emit_typed(std::move(event));
  };
  Result<std::unique_ptr<store::RealStore>> store =
      store::RealStore::open(std::move(store_options), clock_);
  if (!store) return fail(store.error());
  store_ = *std::move(store);
  events_ = std::make_unique<admin::EventHub>(clock_, store_->last_sequence());
  events_->add_outlet([this](const Event& event) { early_log_->write(event); });
  metrics_.emplace(clock_);
  events_->add_outlet([this](const Event& event) { metrics_->on_event(event); });
  events_->add_outlet([this](const Event& event) {
    if (event.level != Level::kDebug) store_->put_event(event);
  });
  return build_core();
}

// After the loop. The parts end in reverse order; the store and the log last, as they keep what
// the others said.
void Daemon::close() {
  if (fronts_) fronts_->close();
  pool_.stop();
  look_pool_.stop();
  pool_.join();
  look_pool_.join();
  // Nobody else writes any more.
  if (early_log_) early_log_->release();
  residency_.reset();
  store_.reset();
  if (log_) log_->close();
}

int run_daemon(const DaemonOptions& options, catalog::Config config) {
  std::signal(SIGPIPE, SIG_IGN);
  Daemon daemon(options, std::move(config));
  return daemon.run();
}

}  // namespace berth
