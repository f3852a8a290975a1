#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "supervisor/catalog/config.h"
#include "supervisor/catalog/config_page.h"
#include "tests/unit/catalog/sample_config.h"

namespace berth::catalog {
namespace {

// Whatever the text: a configuration or problems, never both, never neither.
void check_outcome(std::string_view text) {
  const ConfigResult result = parse_config(text, "/etc/berth/berth.toml");
  RC_ASSERT(result.config.has_value() == result.problems.empty());
  RC_ASSERT(result.problems.size() <= 50U);
  for (const ConfigProblem& problem : result.problems) {
    RC_ASSERT(!problem.message.empty());
    RC_ASSERT(problem.message.size() < 4000U);
    RC_ASSERT(problem.to_string().find('\n') == std::string::npos);
  }
  if (result.config) {
    const ConfigResult again = parse_config(show_config(*result.config), "/etc/berth/berth.toml");
    RC_ASSERT(again.config.has_value());
    RC_ASSERT(again.config->server == result.config->server);
    RC_ASSERT(again.config->models == result.config->models);
  }
}

RC_GTEST_PROP(ConfigProperty, RandomBytesNeverCrash, (const std::string& text)) {
  check_outcome(text);
}

RC_GTEST_PROP(ConfigProperty, MutationsOfAConfigurationNeverCrash, ()) {
  std::string text = *rc::gen::element(std::string(kSampleConfig), example_file());
  const int count = *rc::gen::inRange(1, 12);
  for (int i = 0; i < count; ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    const auto length = *rc::gen::inRange<std::size_t>(0, 40);
    switch (*rc::gen::inRange(0, 5)) {
      case 0:
        text[at] = *rc::gen::arbitrary<char>();
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(*rc::gen::inRange<std::size_t>(0, text.size()), length));
        break;
      case 3:
        text.insert(at, *rc::gen::element<std::string>("\"", "'", "[", "]", "{", "}", "=", ".", "#",
                                                       "\n", "\"\"\"", "\\u0000", "1e999",
                                                       "-9223372036854775808", "0x", "nan"));
        break;
      default:
        text.resize(at);
        text += ' ';
    }
    if (text.empty()) text = " ";
  }
  check_outcome(text);
}

RC_GTEST_PROP(ConfigProperty, AnyValueForAnyKeyIsTakenOrRefused, ()) {
  const auto key = *rc::gen::elementOf(
      std::vector<std::pair<std::string, std::string>>{{"server", "grpc"},
                                                       {"server", "http"},
                                                       {"server", "state_dir"},
                                                       {"server", "log_keep"},
                                                       {"server", "queue_timeout"},
                                                       {"server", "max_body"},
                                                       {"server", "allowed_hosts"},
                                                       {"server", "cors_origins"},
                                                       {"server", "swap_drain"},
                                                       {"memory", "auto_share"},
                                                       {"memory", "host_budget"},
                                                       {"models", "dirs"},
                                                       {"model.m", "aliases"},
                                                       {"model.m", "context"},
                                                       {"model.m", "environment"},
                                                       {"model.m", "memory"},
                                                       {"model.m", "probe"},
                                                       {"model.m", "kv_type"},
                                                       {"model.m", "kind"}});
  const auto value = *rc::gen::element<std::string>(
      "\"auto\"", "\"off\"", "0", "-1", "9223372036854775807", "1.0", "-inf", "true", "[]", "{}",
      "[\"\"]", "[1]", "[\"a\", \"b\"]", "{ a = \"1GiB\" }", "{ a = { b = 1 } }", "\"10m\"",
      "\"1GiB\"", "\"unix:a\"", "[\"unix:a\"]", "[\"[::1]:1\", \"unix:a\"]", "\"127.0.0.1:1\"",
      "\"\"", "\"a\\u0001b\"", "2024-01-01", "[[]]", "[{}]");
  check_outcome("[" + key.first + "]\n" + key.second + " = " + value + "\n");
}

}  // namespace
}  // namespace berth::catalog
