#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "berth/v1/admin.pb.h"
#include "common/result.h"
#include "supervisor/admin/server_state.h"
#include "supervisor/catalog/model.h"
#include "supervisor/core/caller.h"
#include "supervisor/residency/residency.h"

// The memory plan as an operator asks for it and steers it, whatever protocol he comes by. All for
// admins: kPermissionDenied for others. Any thread; `done` on the core strand.
namespace berth::admin {

struct PlanAsk {
  std::string model;                         // or an alias
  std::optional<std::uint32_t> context{};    // tokens; as if the configuration said so
  std::optional<std::uint32_t> sequences{};  // ditto
  core::Caller caller{};
};

// What would be done for a client that asked for the model now. Errors: kUnknownModel; kLoadFailed
// where it cannot be used; kInvalidArgument where the settings cannot be.
void plan_model(ServerState& state, PlanAsk ask, std::function<void(Result<v1::ModelPlan>)> done);

// `model` as the plan was made for it.
v1::ModelPlan to_proto(const residency::PlanReport& report, const catalog::Model& model,
                       const core::Caller& caller);

// As Residency::pin. Errors: also kUnknownModel.
void pin_model(ServerState& state, std::string model, const core::Caller& caller,
               std::function<void(Result<v1::PinModelResponse>)> done);
// A model that is gone can be unpinned, too. Errors: kUnknownModel where it is neither in the
// catalogue nor resident nor pinned.
void unpin_model(ServerState& state, std::string model, const core::Caller& caller,
                 std::function<void(Result<v1::UnpinModelResponse>)> done);

}  // namespace berth::admin
