#include "supervisor/admin/server_state.h"

namespace berth::admin {

Result<std::string> ServerState::name_of(const std::string& name) const {
  const auto model = services.catalog()->find(name);
  if (model) return (*model)->name;
  for (const residency::InstanceSnapshot& instance : services.residency.instances()) {
    if (instance.model == name) return name;
  }
  return fail(model.error());
}

}  // namespace berth::admin
