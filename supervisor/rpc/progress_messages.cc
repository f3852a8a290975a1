#include "supervisor/rpc/progress_messages.h"

namespace berth::rpc {

v1::Loading to_loading(const std::string& phase, const std::string& waits_for, float fraction,
                       std::optional<std::chrono::milliseconds> eta) {
  v1::Loading loading;
  loading.set_phase(phase);
  loading.set_waits_for(waits_for);
  loading.set_fraction(fraction);
  if (eta) loading.set_eta_ms(static_cast<std::uint64_t>(eta->count()));
  return loading;
}

v1::Queued to_queued(std::uint32_t position, std::optional<std::chrono::milliseconds> eta) {
  v1::Queued queued;
  queued.set_position(position);
  if (eta) queued.set_eta_ms(static_cast<std::uint64_t>(eta->count()));
  return queued;
}

}  // namespace berth::rpc
