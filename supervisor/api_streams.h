#pragma once

#include <memory>

#include "supervisor/admin/event_feed.h"
#include "supervisor/admin/load_operation.h"
#include "supervisor/admin/log_reader.h"
#include "supervisor/admin/server_state.h"
#include "supervisor/gateway/http/exchange.h"

namespace berth {

// The answers of our own routes that take their time, over HTTP. Each returns the handler that its
// exchange is served by. Any thread; `state` outlives them.

// Events as server-sent events: `id` is the sequence, `event` the name, `data` the event as JSON. A
// comment every 15 s keeps the connection alive. A client that lets thousands pass gets a last
// event `overflow`, and its stream ends: it can ask again with Last-Event-ID.
std::shared_ptr<gateway::Handler> stream_events(admin::ServerState& state, admin::EventAsk ask,
                                                const gateway::HttpRequest& request,
                                                std::shared_ptr<gateway::Reply> reply);

// A log as it is, as text.
std::shared_ptr<gateway::Handler> stream_log(admin::ServerState& state, admin::LogAsk ask,
                                             const gateway::HttpRequest& request,
                                             std::shared_ptr<gateway::Reply> reply);

// {"ready":{…}}, or without `wait` {"started":{…}}; of a retry with what was lifted beside it.
std::shared_ptr<gateway::Handler> answer_load(admin::ServerState& state, admin::LoadAsk ask,
                                              const gateway::HttpRequest& request,
                                              std::shared_ptr<gateway::Reply> reply);

}  // namespace berth
