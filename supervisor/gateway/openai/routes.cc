#include "supervisor/gateway/openai/routes.h"

#include <memory>
#include <string>
#include <utility>

#include "supervisor/gateway/http/error_response.h"
#include "supervisor/gateway/openai/json_body.h"
#include "supervisor/gateway/openai/late_handler.h"
#include "supervisor/gateway/openai/model_list.h"
#include "supervisor/gateway/openai/requests.h"
#include "supervisor/gateway/openai/text_answer.h"

namespace berth::gateway::openai {
namespace {

namespace json = boost::json;

using HandlerOf = std::shared_ptr<Handler>;

void refuse(const residency::Services& services, const Exchange& exchange, const Error& error,
            const std::string& model) {
  services.events.emit_typed(
      events::RequestRefused{.request = exchange.id,
                             .model = model,
                             .reason = std::string(reason_info(error.reason).name),
                             .message = error.message});
  exchange.reply->send(error_response(error, exchange.id, exchange.caller));
}

void send_json(const std::shared_ptr<Reply>& reply, std::string body) {
  HttpResponse response;
  response.body = std::move(body);
  reply->send(std::move(response));
}

// POST /v1/chat/completions and /v1/completions. Everything about the body is done where the
// server calls; what depends on the model, on the core strand.
HandlerOf start_text(const residency::Services& services, AnswerKind kind, HttpRequest request,
                     std::shared_ptr<Reply> reply) {
  Exchange exchange{std::move(request.id), std::move(request.caller), std::move(reply)};
  const Result<json::object> body = parse_body(request.body);
  if (!body) {
    refuse(services, exchange, body.error(), "");
    return nullptr;
  }
  Result<std::string> model = read_model(*body);
  if (!model) {
    refuse(services, exchange, model.error(), "");
    return nullptr;
  }
  Result<TextRequest> parsed =
      kind == AnswerKind::kChat ? read_chat_request(*body) : read_completion_request(*body);
  if (!parsed) {
    refuse(services, exchange, parsed.error(), *model);
    return nullptr;
  }
  const auto handler = std::make_shared<LateHandler>();
  services.clock.post([services, kind, handler, exchange = std::move(exchange),
                       parsed = *std::move(parsed)]() mutable {
    if (handler->gone()) return;
    handler->become(start_text_answer(services, kind, std::move(exchange), std::move(parsed)));
  });
  return handler;
}

Route text_route(const residency::Services& services, const char* path, AnswerKind kind) {
  Route route{"POST", path, Access::kClient, {}};
  route.start = [services, kind](HttpRequest request, std::shared_ptr<Reply> reply) {
    return start_text(services, kind, std::move(request), std::move(reply));
  };
  return route;
}

Route list_route(const residency::Services& services) {
  Route route{"GET", "/v1/models", Access::kClient, {}};
  route.start = [services](const HttpRequest& /*request*/,
                           std::shared_ptr<Reply> reply) -> HandlerOf {
    services.clock.post(
        [services, reply = std::move(reply)] { send_json(reply, list_models(services)); });
    return nullptr;
  };
  return route;
}

Route model_route(const residency::Services& services) {
  // Names may have slashes.
  Route route{"GET", "/v1/models/{...}", Access::kClient, {}};
  route.start = [services](HttpRequest request, std::shared_ptr<Reply> reply) -> HandlerOf {
    std::string name = request.arguments.empty() ? "" : request.arguments.front();
    services.clock.post([services, reply = std::move(reply), name = std::move(name),
                         id = std::move(request.id), caller = std::move(request.caller)] {
      Result<std::string> shown = show_model(services, name);
      if (shown) return send_json(reply, *std::move(shown));
      reply->send(error_response(shown.error(), id, caller));
    });
    return nullptr;
  };
  return route;
}

}  // namespace

std::vector<Route> routes(const residency::Services& services) {
  std::vector<Route> all;
  all.push_back(list_route(services));
  all.push_back(model_route(services));
  all.push_back(text_route(services, "/v1/chat/completions", AnswerKind::kChat));
  all.push_back(text_route(services, "/v1/completions", AnswerKind::kCompletion));
  return all;
}

}  // namespace berth::gateway::openai
