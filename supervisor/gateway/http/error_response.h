#pragma once

#include <string>

#include "common/result.h"
#include "supervisor/core/caller.h"
#include "supervisor/gateway/http/exchange.h"

namespace berth::gateway {

// {"error":{"message","type","code","param","request_id","detail":{…}}}, as the one error table
// says and cut to what the caller may see. One line of JSON without a line end.
std::string error_body(const Error& error, const std::string& request_id,
                       const core::Caller& caller);

// The same with its status and the headers that belong to it: Retry-After, x-should-retry,
// WWW-Authenticate.
HttpResponse error_response(const Error& error, const std::string& request_id,
                            const core::Caller& caller);

}  // namespace berth::gateway
