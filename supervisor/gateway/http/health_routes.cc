#include <utility>

#include "supervisor/gateway/http/http_server.h"

namespace berth::gateway {
namespace {

constexpr int kUnavailable = 503;

std::shared_ptr<Handler> say(const std::shared_ptr<Reply>& reply, int status, std::string text) {
  HttpResponse response;
  response.status = status;
  response.content_type = "text/plain; charset=utf-8";
  response.headers.push_back({"Cache-Control", "no-store"});
  response.body = std::move(text);
  reply->send(std::move(response));
  return nullptr;
}

}  // namespace

std::vector<Route> health_routes(std::function<bool()> ready) {
  std::vector<Route> routes;
  routes.push_back(
      {"GET", "/livez", Access::kOpen, [](const HttpRequest&, const std::shared_ptr<Reply>& reply) {
         return say(reply, 200, "ok\n");
       }});
  routes.push_back(
      {"GET", "/readyz", Access::kOpen,
       [ready = std::move(ready)](const HttpRequest&, const std::shared_ptr<Reply>& reply) {
         if (ready()) return say(reply, 200, "ok\n");
         return say(reply, kUnavailable, "not ready\n");
       }});
  return routes;
}

}  // namespace berth::gateway
