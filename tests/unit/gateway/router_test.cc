#include "supervisor/gateway/http/router.h"

#include <gtest/gtest.h>

#include <string>

namespace berth::gateway {
namespace {

Router make() {
  std::vector<Route> routes;
  const auto add = [&routes](const char* method, const char* pattern) {
    routes.push_back({method, pattern, Access::kOpen, nullptr});
  };
  add("GET", "/{...}");
  add("GET", "/");
  add("GET", "/v1/models");
  add("GET", "/v1/models/{...}");
  add("POST", "/api/models/{}/load");
  add("DELETE", "/api/models/{}");
  add("GET", "/api/models/{}");
  add("GET", "/api/models/all");
  return Router(std::move(routes));
}

std::string found(const Router& router, const char* method, const char* path) {
  const auto match = router.find(method, path);
  if (!match) return "error";
  if (match->route == nullptr) return match->methods.empty() ? "none" : "not " + match->methods;
  std::string text = match->route->pattern;
  for (const std::string& argument : match->arguments) text += " " + argument;
  return text;
}

TEST(Router, TheMoreExactPatternComesFirst) {
  const Router router = make();
  EXPECT_EQ(found(router, "GET", "/"), "/");
  EXPECT_EQ(found(router, "HEAD", "/v1/models"), "/v1/models");
  EXPECT_EQ(found(router, "GET", "/v1/models/a/b"), "/v1/models/{...} a/b");
  EXPECT_EQ(found(router, "GET", "/api/models/all"), "/api/models/all");
  EXPECT_EQ(found(router, "GET", "/api/models/a"), "/api/models/{} a");
  EXPECT_EQ(found(router, "GET", "/style.css"), "/{...} style.css");
  EXPECT_EQ(found(router, "POST", "/api/models/org%2fa/load"), "/api/models/{}/load org/a");
}

TEST(Router, AWrongMethodIsToldTheRightOnes) {
  const Router router = make();
  EXPECT_EQ(found(router, "POST", "/api/models/a"), "not DELETE, GET, HEAD");
  EXPECT_EQ(found(router, "POST", "/nothing"), "not GET, HEAD");
  EXPECT_EQ(found(router, "PUT", "/api/models/a/load"), "not POST, GET, HEAD");
}

TEST(Router, EmptyPartsMatchNothing) {
  const Router router(
      {{"GET", "/a/{}/b", Access::kOpen, nullptr}, {"GET", "/c/{...}", Access::kOpen, nullptr}});
  for (const char* path : {"", "a", "/", "//", "/a", "/a/", "/a//b", "/a/x", "/a/x/", "/a/x/b/",
                           "/a/x/b/c", "//a/x/b", "/c", "/c/", "/A/x/b", "/%61/x/b"}) {
    EXPECT_EQ(found(router, "GET", path), "none") << path;
  }
}

TEST(Router, ArgumentsAreUtf8WithoutControlCharacters) {
  EXPECT_EQ(*percent_decoded("a%20%C3%A9+b"), "a \xC3\xA9+b");
  for (const char* bad : {"%", "%4", "%4g", "%%41", "%C3", "%ED%A0%80", "%00", "%0a", "%7F"}) {
    EXPECT_FALSE(percent_decoded(bad)) << bad;
  }
}

}  // namespace
}  // namespace berth::gateway
