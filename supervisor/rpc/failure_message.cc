#include "supervisor/rpc/failure_message.h"

#include <string>

#include "supervisor/core/entitlement.h"
#include "supervisor/core/failure.h"
#include "supervisor/rpc/exit_message.h"

namespace berth::rpc {

v1::Failure to_brief(const core::FailureRecord& record, const core::Caller& caller) {
  v1::Failure to;
  to.set_id(record.id.to_string());
  to.set_reason(core::text_for(record.reason, Reason::kLoadFailed, caller));
  to.set_since_unix_ms(record.ended.time_since_epoch().count());
  to.set_instance_id(record.instance.to_string());
  if (!core::may_know_failures(caller)) return to;
  to.set_class_(std::string(core::failure_class_name(record.failure_class)));
  if (record.exit) put_exit(*record.exit, to);
  return to;
}

}  // namespace berth::rpc
