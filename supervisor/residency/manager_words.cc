#include "supervisor/residency/manager_words.h"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "common/units.h"
#include "supervisor/core/failure.h"
#include "supervisor/core/instance_state.h"
#include "supervisor/core/memory/decision.h"
#include "supervisor/core/redact.h"
#include "supervisor/residency/room.h"

namespace berth::residency {
namespace {

constexpr std::size_t kReasonBytes = 512;

// What stood between a model and its memory.
std::string memory_sentence(std::string_view waits_for) {
  const auto is = [waits_for](core::ParkFor what) { return waits_for == core::park_name(what); };
  std::string text = "it waits for memory";
  if (is(core::ParkFor::kLeaving)) return text + " of models that are being stopped";
  if (is(core::ParkFor::kClosing)) return text + " of models that finish their requests";
  if (is(core::ParkFor::kGrace)) return text + " of models that were used a moment ago";
  if (is(core::ParkFor::kClients)) return text + " of models that are in use";
  if (is(core::ParkFor::kOlder)) return text + ", and an older request comes first";
  if (is(core::ParkFor::kForeign)) return text + " that other programs have";
  if (is(core::ParkFor::kIdleRoom)) return text + " that nobody needs";
  if (waits_for == kWaitsForIdleWork) return text + " that idle work is giving back";
  return text;
}

}  // namespace

std::string human(Duration duration) {
  return format_duration_human(std::chrono::duration_cast<std::chrono::milliseconds>(duration));
}

std::string requests(std::uint32_t count, const std::string& verb) {
  return std::to_string(count) + (count == 1 ? " request " + verb + "s" : " requests " + verb);
}

Error problem_error(const catalog::Model& model) {
  FailureEvidence evidence;
  evidence.failure_class = core::failure_class_name(core::FailureClass::kPermanent);
  evidence.reason = core::carried_text(model.problem, kReasonBytes);
  std::string message = model.name + " cannot be loaded: " + evidence.reason;
  ErrorExtras extras;
  extras.failure = std::move(evidence);
  return {Reason::kLoadFailed, std::move(message), std::move(extras)};
}

Error vanished_error(const std::string& model) {
  ErrorExtras extras;
  extras.param = "model";
  return {Reason::kUnknownModel,
          model +
              " is not in the catalogue any more: its file, or its section of the "
              "configuration, was taken away while the request waited.",
          std::move(extras)};
}

std::string wait_sentence(const ClaimProgress& progress) {
  if (progress.queue_position) {
    return "it was number " + std::to_string(*progress.queue_position) + " of the queue";
  }
  if (progress.phase == kPhaseStopping) return "the model's last process is still going";
  if (progress.phase == kPhaseBackOff) return "its worker died and will be started again";
  if (progress.phase == kPhaseQueued) return memory_sentence(progress.waits_for);
  if (progress.phase == kPhaseFailed) return "its load has failed; ask again to learn why";
  return "it is loading (" + progress.phase + ", " +
         std::to_string(static_cast<int>(progress.fraction * 100)) +
         " %), and the load goes on; ask again";
}

Error shutting_down_error() {
  return {Reason::kShuttingDown, "The server is stopping; ask again when it is back."};
}

Error conflict_error(const Instance& instance, std::string message) {
  ErrorExtras extras;
  const auto& state = instance.machine().stamped_state();
  extras.holder = HolderInfo{instance.model().name,
                             std::string(info(state.value).name),
                             {},
                             state.since.wall.time_since_epoch().count()};
  return {Reason::kConflict, std::move(message), std::move(extras)};
}

}  // namespace berth::residency
