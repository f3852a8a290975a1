#include "supervisor/gateway/openai/routes.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "supervisor/gateway/forwarding.h"
#include "supervisor/gateway/http/error_response.h"
#include "supervisor/gateway/model_name.h"
#include "supervisor/gateway/openai/embedding_answer.h"
#include "supervisor/gateway/openai/exchange.h"
#include "supervisor/gateway/openai/forwarded_answer.h"
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
  residency::RequestArrival arrival;
  arrival.id = exchange.id;
  arrival.tenant = exchange.caller.tenant;
  arrival.protocol = "http";
  services.requests.refused(std::move(arrival), model, error);
  exchange.reply->send(error_response(error, exchange.id, exchange.caller));
}

void send_json(const std::shared_ptr<Reply>& reply, std::string body) {
  HttpResponse response;
  response.body = std::move(body);
  reply->send(std::move(response));
}

// How one route reads a body, and answers what it has read on the core strand.
template <typename Request>
struct Work {
  std::function<Result<Request>(const json::object& body)> read;
  std::function<HandlerOf(const residency::Services& services, Exchange exchange, Request request)>
      answer;
};

// Whether a client asks for a stream, also where the program that is its model reads the rest.
bool asks_for_stream(const json::object& body) {
  const json::value* stream = body.if_contains("stream");
  return stream != nullptr && stream->is_bool() && stream->get_bool();
}

// On the core strand, unless the client is gone by then.
std::shared_ptr<LateHandler> start_on_core(const residency::Services& services,
                                           std::function<HandlerOf()> start) {
  auto handler = std::make_shared<LateHandler>();
  services.clock.post([handler, start = std::move(start)] {
    if (!handler->gone()) handler->become(start());
  });
  return handler;
}

// Everything about the body is done where the server calls, once: what a program is asked is its
// own matter, so that its body is passed on and not read. The rest is the core strand's.
template <typename Request>
HandlerOf start(const residency::Services& services, const Work<Request>& work, HttpRequest request,
                std::shared_ptr<Reply> reply) {
  Exchange exchange{std::move(request.id), std::move(request.caller), std::move(reply)};
  Result<json::object> body = parse_body(request.body);
  const Result<std::string> model = body ? read_model(*body) : fail(body.error());
  if (!model) {
    refuse(services, exchange, model.error(), "");
    return nullptr;
  }
  const Result<bool> forwarded = is_forwarded(services, *model);
  if (!forwarded) {
    refuse(services, exchange, forwarded.error(), *model);
    return nullptr;
  }
  if (*forwarded) {
    const bool streams = asks_for_stream(*body);
    body->clear();
    auto raw = std::make_shared<ForwardedRequest>(
        ForwardedRequest{exchange.id, *model, std::move(request.path), cut_at_model(request.body)});
    return start_on_core(services, [services, exchange = std::move(exchange), raw, streams] {
      return start_forwarded_answer(services, exchange, std::move(*raw), streams);
    });
  }
  std::string().swap(request.body);  // what was parsed is copy enough
  const auto read = std::make_shared<Result<Request>>(work.read(*body));
  if (!*read) {
    refuse(services, exchange, read->error(), *model);
    return nullptr;
  }
  return start_on_core(services,
                       [services, exchange = std::move(exchange), read, answer = work.answer] {
                         return answer(services, exchange, *std::move(*read));
                       });
}

template <typename Request>
Route post_route(const residency::Services& services, const char* path, Work<Request> work) {
  Route route{"POST", path, Access::kClient, {}};
  route.start = [services, work = std::move(work)](HttpRequest request,
                                                   std::shared_ptr<Reply> reply) {
    return start(services, work, std::move(request), std::move(reply));
  };
  return route;
}

Route text_route(const residency::Services& services, const char* path, AnswerKind kind) {
  Work<TextRequest> work;
  work.read = kind == AnswerKind::kChat ? read_chat_request : read_completion_request;
  work.answer = [kind](const residency::Services& with, Exchange exchange, TextRequest request) {
    return start_text_answer(with, kind, std::move(exchange), std::move(request));
  };
  return post_route(services, path, std::move(work));
}

Route embedding_route(const residency::Services& services) {
  Work<EmbeddingRequest> work{read_embedding_request, start_embedding_answer};
  return post_route(services, "/v1/embeddings", std::move(work));
}

Route list_route(const residency::Services& services) {
  Route route{"GET", "/v1/models", Access::kClient, {}};
  route.brief = true;
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
  route.brief = true;
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
  all.push_back(embedding_route(services));
  return all;
}

}  // namespace berth::gateway::openai
