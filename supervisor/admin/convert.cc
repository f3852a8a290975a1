#include "supervisor/admin/convert.h"

#include <string>
#include <string_view>
#include <variant>

#include "supervisor/rpc/progress_messages.h"

namespace berth::admin {
namespace {

struct PutValue {
  v1::EventField& to;
  void operator()(const std::string& text) const { to.set_text(text); }
  void operator()(std::int64_t integer) const { to.set_integer(integer); }
  void operator()(double number) const { to.set_number(number); }
  void operator()(bool truth) const { to.set_truth(truth); }
};

void put_field(std::string_view name, const FieldValue& value, v1::Event& to) {
  v1::EventField& field = *to.add_fields();
  field.set_name(std::string(name));
  std::visit(PutValue{field}, value);
}

// Event and StoredEvent differ only in who owns the names.
template <typename AnyEvent>
v1::Event convert(const AnyEvent& event) {
  v1::Event to;
  to.set_sequence(event.sequence);
  to.set_time_unix_ms(event.time.time_since_epoch().count());
  to.set_name(std::string(event.name));
  to.set_level(std::string(level_name(event.level)));
  return to;
}

}  // namespace

v1::Instance to_proto(const residency::InstanceSnapshot& instance, const core::Caller& caller) {
  v1::Instance to;
  to.set_id(instance.id);
  to.set_model(instance.model);
  to.set_state(instance.state);
  to.set_state_since_unix_ms(instance.state_since.time_since_epoch().count());
  to.set_pid(instance.pid);
  to.set_started_unix_ms(instance.started.time_since_epoch().count());
  if (instance.loading)
    *to.mutable_loading() = rpc::to_loading(instance.loading->phase, instance.loading->waits_for,
                                            instance.loading->fraction, instance.loading->eta);
  to.set_window(instance.window);
  to.set_sequences(instance.sequences);
  to.set_active(instance.active);
  to.set_waiting(instance.waiting);
  to.set_weights_bytes(instance.weights_bytes);
  to.set_kv_bytes(instance.kv_bytes);
  to.set_working_bytes(instance.working_bytes);
  if (instance.ttl) to.set_ttl_ms(static_cast<std::uint64_t>(instance.ttl->count()));
  to.set_requests_served(instance.requests_served);
  to.set_socket(instance.socket);
  for (const std::string& word : instance.command) to.add_command(word);
  to.set_pinned(instance.pinned);
  if (instance.plan.bound) {
    to.set_window_bound(std::string(core::window_bound_name(*instance.plan.bound)));
  }
  if (caller.admin()) return to;
  to.clear_socket();
  to.clear_command();
  to.clear_pid();
  return to;
}

v1::Event to_proto(const Event& event) {
  v1::Event to = convert(event);
  for (const EventField& field : event.fields) put_field(field.name, field.value, to);
  return to;
}

v1::Event to_proto(const store::StoredEvent& event) {
  v1::Event to = convert(event);
  for (const auto& [name, value] : event.fields) put_field(name, value, to);
  return to;
}

}  // namespace berth::admin
