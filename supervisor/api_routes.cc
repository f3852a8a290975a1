#include "supervisor/api_routes.h"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <charconv>
#include <chrono>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/proto_json/proto_json.h"
#include "common/text.h"
#include "supervisor/admin/failures.h"
#include "supervisor/admin/memory_plan.h"
#include "supervisor/admin/memory_state.h"
#include "supervisor/admin/state.h"
#include "supervisor/api_streams.h"
#include "supervisor/gateway/http/error_response.h"
#include "supervisor/query_arguments.h"

namespace berth {
namespace {

using gateway::Access;
using gateway::Handler;
using gateway::HttpRequest;
using gateway::HttpResponse;
using gateway::Reply;
using gateway::Route;

using ReplyPtr = std::shared_ptr<Reply>;
using HandlerPtr = std::shared_ptr<Handler>;

constexpr auto kLongestLoad = std::chrono::hours(24);

// Whoever waits for one answer only: that the client is gone, the reply knows.
HandlerPtr refuse(const Error& error, const HttpRequest& request, const ReplyPtr& reply) {
  reply->send(gateway::error_response(error, request.id, request.caller));
  return nullptr;
}

void send_json(Reply& reply, const google::protobuf::Message& message) {
  HttpResponse response;
  response.headers = {{"Cache-Control", "no-store"}};
  response.body = to_json(message, JsonWriter::Layout::kLine) + "\n";
  reply.send(std::move(response));
}

template <typename Message>
std::function<void(Result<Message>)> sender(const HttpRequest& request, const ReplyPtr& reply) {
  return [id = request.id, caller = request.caller, reply](const Result<Message>& message) {
    if (!message) return reply->send(gateway::error_response(message.error(), id, caller));
    send_json(*reply, *message);
  };
}

// The body of a write: an object whose members are known truths. Empty: none.
Result<boost::json::object> truths_of(const std::string& body,
                                      std::initializer_list<std::string_view> known) {
  if (body.empty()) return boost::json::object();
  boost::system::error_code failed;
  const boost::json::value value = boost::json::parse(body, failed);
  if (failed) {
    return fail(Reason::kInvalidArgument, "The body is no valid JSON: " + failed.message() + ".");
  }
  const boost::json::object* const object = value.if_object();
  if (object == nullptr) {
    return fail(Reason::kInvalidArgument, "The body has to be a JSON object, like {}.");
  }
  for (const auto& member : *object) {
    ErrorExtras extras;
    extras.param = printable_line(member.key(), 64);
    if (std::ranges::find(known, std::string_view(member.key())) == known.end()) {
      return fail(Error(Reason::kInvalidArgument, "The body has no field " + extras.param + ".",
                        ErrorExtras(extras)));
    }
    if (!member.value().is_bool()) {
      return fail(Error(Reason::kInvalidArgument, extras.param + " has to be true or false.",
                        ErrorExtras(extras)));
    }
  }
  return *object;
}

bool truth_of(const boost::json::object& object, std::string_view name, bool otherwise) {
  const boost::json::value* const value = object.if_contains(name);
  return value == nullptr ? otherwise : value->as_bool();
}

// "name/of/model/load" -> "name/of/model" and "load"; names may contain slashes.
std::pair<std::string, std::string> split_verb(const std::string& rest) {
  const std::size_t slash = rest.rfind('/');
  if (slash == std::string::npos || slash == 0) return {};
  return {rest.substr(0, slash), rest.substr(slash + 1)};
}

Error no_such_route(const HttpRequest& request) {
  return {Reason::kNotFound, "There is no route " + printable_line(request.path, 256) + "."};
}

// --- reading

HandlerPtr get_state(admin::ServerState& state, const HttpRequest& request, const ReplyPtr& reply) {
  admin::get_state(state, request.caller,
                   [reply](const v1::State& now) { send_json(*reply, now); });
  return nullptr;
}

HandlerPtr get_failures(admin::ServerState& state, const HttpRequest& request,
                        const ReplyPtr& reply) {
  const auto arguments = QueryArguments::parse(request.query, {"model", "history", "limit"});
  if (!arguments) return refuse(arguments.error(), request, reply);
  const Result<bool> history = arguments->truth("history", false);
  if (!history) return refuse(history.error(), request, reply);
  const auto limit = arguments->number("limit", std::numeric_limits<std::uint32_t>::max());
  if (!limit) return refuse(limit.error(), request, reply);
  admin::FailureAsk ask;
  ask.model = arguments->text("model");
  ask.history = *history;
  ask.limit = static_cast<std::uint32_t>(limit->value_or(0));
  ask.caller = request.caller;
  admin::list_failures(state, std::move(ask), sender<v1::ListFailuresResponse>(request, reply));
  return nullptr;
}

HandlerPtr get_events(admin::ServerState& state, const HttpRequest& request,
                      const ReplyPtr& reply) {
  const auto arguments =
      QueryArguments::parse(request.query, {"since", "prefix", "request", "follow"});
  if (!arguments) return refuse(arguments.error(), request, reply);
  // Until the year 9999, so that no time overflows.
  const auto since = arguments->number("since", 253'402'300'799'999);
  if (!since) return refuse(since.error(), request, reply);
  const Result<bool> follow = arguments->truth("follow", true);
  if (!follow) return refuse(follow.error(), request, reply);
  admin::EventAsk ask;
  ask.since = WallTime{std::chrono::milliseconds(since->value_or(0))};
  ask.prefix = arguments->text("prefix");
  ask.request = arguments->text("request");
  ask.follow = *follow;
  ask.caller = request.caller;
  // What a browser sends by itself when its connection broke. One that is no number of ours asks
  // for nothing.
  std::uint64_t after = 0;
  const std::string& last = request.last_event_id;
  const auto [end, failed] = std::from_chars(last.data(), last.data() + last.size(), after);
  if (!last.empty() && failed == std::errc() && end == last.data() + last.size()) ask.after = after;
  return stream_events(state, std::move(ask), request, reply);
}

HandlerPtr get_plan(admin::ServerState& state, const HttpRequest& request, const ReplyPtr& reply) {
  const auto arguments = QueryArguments::parse(request.query, {"model", "context", "sequences"});
  if (!arguments) return refuse(arguments.error(), request, reply);
  const auto context = arguments->number("context", catalog::kMaxContext, catalog::kMinContext);
  if (!context) return refuse(context.error(), request, reply);
  const auto sequences = arguments->number("sequences", catalog::kMaxSequences, 1);
  if (!sequences) return refuse(sequences.error(), request, reply);
  admin::PlanAsk ask;
  ask.model = arguments->text("model");
  if (ask.model.empty()) {
    ErrorExtras extras;
    extras.param = "model";
    return refuse(Error(Reason::kInvalidArgument, "Say which model: /api/plan?model=NAME.",
                        std::move(extras)),
                  request, reply);
  }
  if (*context) ask.context = static_cast<std::uint32_t>(**context);
  if (*sequences) ask.sequences = static_cast<std::uint32_t>(**sequences);
  ask.caller = request.caller;
  admin::plan_model(state, std::move(ask), sender<v1::ModelPlan>(request, reply));
  return nullptr;
}

HandlerPtr get_memory(admin::ServerState& state, const HttpRequest& request,
                      const ReplyPtr& reply) {
  admin::get_memory(state, request.caller, sender<v1::Memory>(request, reply));
  return nullptr;
}

HandlerPtr get_metrics(admin::ServerState& state, admin::Metrics& metrics, const ReplyPtr& reply) {
  metrics.scrape(state, [reply](std::string text) {
    HttpResponse response;
    response.content_type = admin::Metrics::kContentType;
    response.body = std::move(text);
    reply->send(std::move(response));
  });
  return nullptr;
}

HandlerPtr get_of_model(admin::ServerState& state, const HttpRequest& request,
                        const ReplyPtr& reply) {
  auto [model, verb] = split_verb(request.arguments.at(0));
  if (verb != "log") return refuse(no_such_route(request), request, reply);
  const auto arguments = QueryArguments::parse(request.query, {"tail", "follow"});
  if (!arguments) return refuse(arguments.error(), request, reply);
  const auto tail = arguments->number("tail", std::numeric_limits<std::uint32_t>::max());
  if (!tail) return refuse(tail.error(), request, reply);
  const Result<bool> follow = arguments->truth("follow", false);
  if (!follow) return refuse(follow.error(), request, reply);
  admin::LogAsk ask;
  ask.model = std::move(model);
  if (*tail) ask.lines = static_cast<std::uint32_t>(**tail);
  ask.follow = *follow;
  ask.caller = request.caller;
  return stream_log(state, std::move(ask), request, reply);
}

// --- writing

HandlerPtr load(admin::ServerState& state, std::string model, bool retry,
                const HttpRequest& request, const ReplyPtr& reply) {
  const auto body = truths_of(request.body, {"wait"});
  if (!body) return refuse(body.error(), request, reply);
  admin::LoadAsk ask;
  ask.model = std::move(model);
  ask.retry = retry;
  ask.wait = truth_of(*body, "wait", true);
  ask.deadline = state.services.clock.now() + kLongestLoad;
  ask.caller = request.caller;
  return answer_load(state, std::move(ask), request, reply);
}

HandlerPtr unload(admin::ServerState& state, std::string model, const HttpRequest& request,
                  const ReplyPtr& reply) {
  const auto body = truths_of(request.body, {"force"});
  if (!body) return refuse(body.error(), request, reply);
  admin::unload_model(state, std::move(model), truth_of(*body, "force", false), request.caller,
                      sender<v1::UnloadModelResponse>(request, reply));
  return nullptr;
}

HandlerPtr pin(admin::ServerState& state, std::string model, bool pinned,
               const HttpRequest& request, const ReplyPtr& reply) {
  const auto body = truths_of(request.body, {});
  if (!body) return refuse(body.error(), request, reply);
  if (pinned) {
    admin::pin_model(state, std::move(model), request.caller,
                     sender<v1::PinModelResponse>(request, reply));
  } else {
    admin::unpin_model(state, std::move(model), request.caller,
                       sender<v1::UnpinModelResponse>(request, reply));
  }
  return nullptr;
}

HandlerPtr post_to_model(admin::ServerState& state, const HttpRequest& request,
                         const ReplyPtr& reply) {
  auto [model, verb] = split_verb(request.arguments.at(0));
  if (verb == "load" || verb == "retry") {
    return load(state, std::move(model), verb == "retry", request, reply);
  }
  if (verb == "unload") return unload(state, std::move(model), request, reply);
  if (verb == "pin" || verb == "unpin") {
    return pin(state, std::move(model), verb == "pin", request, reply);
  }
  return refuse(no_such_route(request), request, reply);
}

HandlerPtr cancel(admin::ServerState& state, const HttpRequest& request, const ReplyPtr& reply) {
  const auto body = truths_of(request.body, {});
  if (!body) return refuse(body.error(), request, reply);
  admin::cancel_request(state, request.arguments.at(0), request.caller,
                        [send = sender<v1::CancelRequestResponse>(request, reply)](Status done) {
                          if (!done) return send(fail(done.error()));
                          send(v1::CancelRequestResponse());
                        });
  return nullptr;
}

// What watches the server, and what ends a request that may be the one its key has to wait for.
Route free_of_limits(Route route) {
  route.limited = false;
  return route;
}

// What is read out of memory and sent whole.
Route brief(Route route) {
  route.brief = true;
  return route;
}

}  // namespace

std::vector<Route> api_routes(admin::ServerState& state, admin::Metrics& metrics) {
  using Start = HandlerPtr (*)(admin::ServerState&, const HttpRequest&, const ReplyPtr&);
  const auto route = [&state](const char* method, const char* pattern, Access access, Start start) {
    return Route{method, pattern, access, [&state, start](HttpRequest request, ReplyPtr reply) {
                   return start(state, request, reply);
                 }};
  };
  return {
      brief(route("GET", "/api/state", Access::kClient, get_state)),
      route("GET", "/api/events", Access::kClient, get_events),
      route("GET", "/api/failures", Access::kClient, get_failures),
      brief(route("GET", "/api/plan", Access::kAdmin, get_plan)),
      brief(route("GET", "/api/memory", Access::kAdmin, get_memory)),
      route("GET", "/api/models/{...}", Access::kAdmin, get_of_model),
      route("POST", "/api/models/{...}", Access::kAdmin, post_to_model),
      free_of_limits(route("POST", "/api/requests/{}/cancel", Access::kAdmin, cancel)),
      brief(free_of_limits(
          Route{"GET", "/metrics", Access::kClient,
                [&state, &metrics](const HttpRequest& /*request*/, const ReplyPtr& reply) {
                  return get_metrics(state, metrics, reply);
                }})),
  };
}

}  // namespace berth
