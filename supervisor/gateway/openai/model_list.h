#pragma once

#include <memory>
#include <string>
#include <vector>

#include "supervisor/gateway/http/exchange.h"
#include "supervisor/residency/services.h"

namespace berth::gateway::openai {

// What /v1/models says; asking wakes no model (T87). Core strand.

// {"object":"list","data":[…]}: every model that can be used, by name.
std::string list_models(const residency::Services& services);
// One model, which may be broken: by its name or an alias. Errors: kUnknownModel.
Result<std::string> show_model(const residency::Services& services, const std::string& name);

}  // namespace berth::gateway::openai
