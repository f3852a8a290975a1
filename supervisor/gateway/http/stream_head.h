#pragma once

#include <string>
#include <utility>

#include "supervisor/gateway/http/exchange.h"

namespace berth::gateway {

// The head of an answer that comes piece by piece. nginx and its like would keep the pieces back
// (T33).
inline HttpResponse stream_head(std::string content_type) {
  HttpResponse head;
  head.content_type = std::move(content_type);
  head.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  return head;
}

}  // namespace berth::gateway
