#include "supervisor/admin/metrics.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/unit/admin/harness.h"

namespace berth::admin {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
using testing::HasSubstr;
using testing::Not;

constexpr const char* kIntroduction = R"(# Metrics

`GET /metrics` answers in Prometheus' text format 0.0.4: to a caller on this machine, and from
elsewhere to one with a key, or to everybody with `auth.anonymous`. It reads what is there, so that asking neither wakes a model nor keeps
one loaded. `deploy/prometheus/` has an example of a scrape configuration and of alerts.

Names, kinds and labels are stable. `model` is a name of the catalogue, or empty for requests that
named no model of it. `reason` is `finished`, `cancelled`, or a reason of the error table. A series
is there from the first time that there is something to count.

This page is made from `supervisor/admin/metrics.def`.
)";

std::string_view kind_name(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter:
      return "counter";
    case MetricKind::kGauge:
      return "gauge";
    case MetricKind::kHistogram:
      return "histogram";
  }
  return "";
}

std::string page() {
  std::string out = kIntroduction;
  out += "\n| name | kind | labels | meaning |\n|---|---|---|---|\n";
  for (const MetricInfo& info : metric_catalogue()) {
    out.append("| `").append(info.name).append("` | ").append(kind_name(info.kind)).append(" | ");
    out.append(info.labels).append(info.labels.empty() ? "| " : " | ");
    out.append(info.help).append(" |\n");
  }
  return out;
}

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(MetricsPage, IsWhatTheCatalogueSays) {
  const std::string path = std::string(BERTH_SOURCE_DIR) + "/docs/metrics.md";
  if (std::getenv("BERTH_UPDATE_DOCS") != nullptr) {  // NOLINT(concurrency-mt-unsafe): one thread
    std::ofstream(path, std::ios::binary | std::ios::trunc) << page();
  }
  EXPECT_EQ(read(path), page()) << "write it with BERTH_UPDATE_DOCS=1";
}

class MetricsTest : public AdminTest {
 protected:
  MetricsTest()
      : AdminTest({{.id = "host", .device = {}, .total = 8000, .budget = 4000, .foreign = 100}}) {
    core::PlacementOption option;
    option.bytes = core::DomainBytes::in(core::kHostDomain, 600);
    world_.memory.needs["demo"] = {option};
    state_.pressure = [] { return core::Pressure(); };
    hub_.add_outlet([this](const Event& event) { metrics_.on_event(event); });
    requests_.on_end(
        [this](const residency::RequestRecord& record) { metrics_.on_request_end(record); });
  }

  std::string scrape() {
    std::string got;
    metrics_.scrape(state_, [&](std::string text) { got = std::move(text); });
    world_.clock.settle();
    EXPECT_FALSE(got.empty());
    return got;
  }
  // A bit of everything that is counted.
  void live_a_little() {
    const auto request = served("r-1");
    request->entry->tokens(1);
    world_.clock.advance(1s);
    request->finish({10, 4, 20});
    requests_.refused(
        {.id = "r-2", .model = {}, .tenant = "a", .protocol = "http", .deadline = {}, .cancel = {}},
        "zebra", Error(Reason::kUnknownModel, "There is none."));
    world_.events.emit_typed(events::LoadFailed{.model = "demo", .failure_class = "permanent"});
    world_.events.emit_typed(events::InstanceDied{.model = "demo"});
    world_.events.emit_typed(events::LogDropped{.lines = 3});
    state_.load_ratios = [] { return std::vector<core::LoadRatio>{{"demo", "host", 1}}; };
    world_.clock.settle();
  }

  Metrics metrics_{world_.clock};
};

TEST_F(MetricsTest, AFailureOfAModelThatIsGoneAlertsNobody) {
  sim::WorkerScript script;
  script.fate = sim::Fate::kSaysLoadFailed;
  world_.workers.set_script([script](const std::string&) { return script; });
  const auto refused = ask("r-1");
  world_.clock.advance(1min);
  EXPECT_THAT(scrape(), HasSubstr("berth_standing_failures 1\n"));
  catalog_ = std::make_shared<catalog::Catalog>();
  EXPECT_THAT(scrape(), HasSubstr("berth_standing_failures 0\n"));
}

TEST_F(MetricsTest, M5_PredictedToActualOfModelsThatAreThere) {
  EXPECT_THAT(scrape(), Not(HasSubstr("berth_memory_predicted_to_actual")));
  state_.load_ratios = [] {
    return std::vector<core::LoadRatio>{{"demo", "host", 1.25}, {"gone", "host", 2}};
  };
  const std::string text = scrape();
  EXPECT_THAT(text,
              HasSubstr("berth_memory_predicted_to_actual{model=\"demo\",domain=\"host\"} 1.25\n"));
  EXPECT_THAT(text, Not(HasSubstr("gone")));
}

TEST_F(MetricsTest, NamesKindsAndHelpAreThoseOfTheCatalogue) {
  live_a_little();
  std::map<std::string, std::string> help;
  std::map<std::string, std::string> type;
  std::istringstream lines(scrape());
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string hash;
    std::string what;
    std::string name;
    words >> hash >> what >> name;
    if (hash != "#") continue;
    std::string rest;
    std::getline(words, rest);
    (what == "HELP" ? help : type)[name] = rest.substr(1);
  }
  std::set<std::string> known;
  for (const MetricInfo& info : metric_catalogue()) {
    const std::string name(info.name);
    known.insert(name);
    EXPECT_EQ(help[name], info.help) << name;
    EXPECT_EQ(type[name], kind_name(info.kind)) << name;
  }
  for (const auto& [name, text] : help) EXPECT_TRUE(known.contains(name)) << name;
}

TEST_F(MetricsTest, CountsWhatHappened) {
  live_a_little();
  const std::string text = scrape();
  for (const char* line : {"berth_requests_total{model=\"demo\",reason=\"finished\"} 1\n",
                           "berth_requests_total{model=\"\",reason=\"unknown_model\"} 1\n",
                           "berth_prompt_tokens_total{model=\"demo\"} 10\n",
                           "berth_cached_tokens_total{model=\"demo\"} 4\n",
                           "berth_completion_tokens_total{model=\"demo\"} 20\n",
                           "berth_loads_total{model=\"demo\",outcome=\"ready\"} 1\n",
                           "berth_load_failures_total{class=\"permanent\",model=\"demo\"} 1\n",
                           "berth_load_seconds_count{model=\"demo\"} 1\n",
                           "berth_load_phase_seconds_count{model=\"demo\",phase=\"weights\"} 1\n",
                           "berth_request_queue_seconds_count{model=\"demo\"} 1\n",
                           "berth_time_to_first_token_seconds_count{model=\"demo\"} 1\n",
                           "berth_request_seconds_count{model=\"demo\"} 1\n",
                           "berth_log_lines_dropped_total 3\n",
                           "berth_instance_deaths_total{model=\"demo\"} 1\n",
                           "berth_instances{state=\"ready\"} 1\n",
                           "berth_instances{state=\"loading\"} 0\n",
                           "berth_instances_stuck 0\n",
                           "berth_resident_bytes{model=\"demo\"} 5000\n",
                           "berth_models 2\n",
                           "berth_memory_total_bytes{domain=\"host\"} 8000\n",
                           "berth_memory_available_bytes{domain=\"host\"} 3400\n",
                           "berth_memory_budget_bytes{domain=\"host\"} 4000\n",
                           "berth_memory_limit_bytes{domain=\"host\"} 4000\n",
                           "berth_memory_foreign_bytes{domain=\"host\"} 100\n",
                           "berth_memory_charged_bytes{domain=\"host\",part=\"overhead\"} 600\n",
                           "berth_charged_bytes{model=\"demo\",domain=\"host\"} 600\n",
                           "berth_memory_pressure_level 0\n",
                           "berth_evictions_total{cause=\"idle\"} 0\n",
                           "berth_swaps_avoided_total 0\n",
                           "berth_memory_refusals_total{why=\"never_fits\"} 0\n",
                           "berth_core_loop_lag_seconds 0.002\n",
                           "berth_requests{state=\"waiting\"} 0\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST_F(MetricsTest, M13_EvictionsRefusalsAndTheWorstWaitAreCounted) {
  const auto put = [this](const std::string& model, std::uint64_t bytes) {
    core::PlacementOption option;
    option.bytes = core::DomainBytes::in(core::kHostDomain, bytes);
    world_.memory.needs[model] = {option};
  };
  put("demo", 3000);
  put("other/one", 3000);
  served("r-1")->finish({});
  world_.clock.advance(1min);
  const auto other = ask("r-2", "uid:1", "other/one");
  world_.clock.advance(1min);
  ASSERT_TRUE(other->lease);
  put("demo", 5000);
  const auto never = ask("r-3");
  world_.clock.settle();
  const std::string text = scrape();
  EXPECT_THAT(text, HasSubstr("berth_evictions_total{cause=\"idle\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("berth_memory_refusals_total{why=\"never_fits\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("berth_longest_wait_seconds 0\n")));
}

TEST_F(MetricsTest, TheLongestWaitIsShownWhileItLasts) {
  sim::WorkerScript script;
  script.load = 5min;
  world_.workers.set_script([script](const std::string&) { return script; });
  const auto waiting = ask("r-1");
  world_.clock.advance(1min);
  EXPECT_THAT(scrape(), HasSubstr("berth_worst_wait_seconds 60\n"));
  EXPECT_THAT(scrape(), HasSubstr("berth_requests{state=\"loading\"} 1\n"));
}

TEST_F(MetricsTest, ModelsThatComeAndGoDoNotGrowItWithoutEnd) {
  for (std::size_t i = 0; i < Metrics::kMostModels + 50; ++i) {
    world_.events.emit_typed(events::InstanceDied{.model = "m" + std::to_string(i)});
  }
  const std::string text = scrape();
  EXPECT_THAT(text, HasSubstr("berth_instance_deaths_total{model=\"m999\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("{model=\"m1000\"}")));
  EXPECT_THAT(text, HasSubstr("berth_instance_deaths_total{model=\"\"} 50\n"));
}

TEST_F(MetricsTest, T87_ScrapingWakesNothingAndKeepsNothing) {
  served("r-1")->finish({});
  world_.clock.settle();
  ASSERT_EQ(residency_.state_of("demo"), "ready");
  // Its ttl is 30 minutes; scraped every second for 10 s more.
  for (int second = 0; second < 30 * 60 + 10; ++second) {
    scrape();
    world_.clock.advance(1s);
  }
  EXPECT_EQ(residency_.state_of("demo"), "absent");
  EXPECT_EQ(world_.events.count("load.started"), 1U);
}

}  // namespace
}  // namespace berth::admin
