#include "supervisor/catalog/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>

#include "supervisor/catalog/config_page.h"
#include "supervisor/catalog/toml_document.h"
#include "tests/unit/catalog/sample_config.h"
#include "tests/unit/catalog/scratch_dir.h"

namespace berth::catalog {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

std::string all_problems(const ConfigResult& result) {
  std::string out;
  for (const ConfigProblem& problem : result.problems) out += problem.to_string() + "\n";
  return out;
}

Config read(std::string_view text) {
  ConfigResult result = parse_config(text, "/etc/berth/berth.toml");
  EXPECT_TRUE(result.config) << all_problems(result);
  return result.config.value_or(Config());
}

Setting setting(const Config& config, std::string_view key) {
  for (const Setting& each : config.settings) {
    if (each.key == key) return each;
  }
  ADD_FAILURE() << "no setting " << key;
  return {};
}

std::vector<std::string> ignored_keys(const Config& config) {
  std::vector<std::string> keys;
  for (const Setting& each : config.ignored) keys.push_back(each.key);
  return keys;
}

TEST(Config, AnEmptyFileGivesTheDefaults) {
  const Config config = read("");
  EXPECT_EQ(config.file, "/etc/berth/berth.toml");
  EXPECT_THAT(config.server.grpc, ElementsAre("unix:/run/berth/berth.sock"));
  EXPECT_EQ(config.server.http, "127.0.0.1:11500");
  EXPECT_EQ(config.server.state_dir, "/var/lib/berth");
  EXPECT_EQ(config.server.run_dir, "/run/berth");
  EXPECT_EQ(config.server.bank_dir, "auto");
  EXPECT_EQ(config.server.log_dir, "/var/log/berth");
  EXPECT_EQ(config.server.log_keep, 5U);
  EXPECT_FALSE(config.server.log_content);
  EXPECT_EQ(config.server.drain_timeout, 30s);
  EXPECT_EQ(config.server.flush_budget, 30s);
  EXPECT_EQ(config.server.queue_timeout, 10min);
  EXPECT_EQ(config.server.max_wait, 10s);
  EXPECT_EQ(config.server.grace, 10s);
  EXPECT_EQ(config.server.retry_grace, 10s);
  EXPECT_EQ(config.server.max_body, std::uint64_t{64} << 20);
  EXPECT_THAT(config.model_dirs, ElementsAre("/srv/models"));
  EXPECT_THAT(config.models, IsEmpty());
  EXPECT_EQ(config.memory.auto_context_max, 32768U);
  EXPECT_THAT(config.ignored, IsEmpty());
  const ModelSettings& defaults = config.defaults;
  EXPECT_EQ(defaults.kind, Kind::kLlama);
  EXPECT_EQ(defaults.context, std::nullopt);
  EXPECT_EQ(defaults.sequences, 4U);
  EXPECT_EQ(defaults.threads, 0U);
  EXPECT_EQ(defaults.batch, 0U);
  EXPECT_EQ(defaults.kv_type, "f16");
  EXPECT_EQ(defaults.flash_attention, "auto");
  EXPECT_EQ(defaults.chat_template, "");
  EXPECT_EQ(defaults.gpu_layers, std::nullopt);
  EXPECT_EQ(defaults.ttl, 30min);
  EXPECT_EQ(defaults.load_timeout, 30min);
  EXPECT_EQ(defaults.load_stall, std::nullopt);
  EXPECT_EQ(defaults.wedge_after, std::nullopt);
  EXPECT_EQ(defaults.probe, "completion");
  EXPECT_THAT(defaults.fatal_exceptions,
              ElementsAre("ValueError", "ModuleNotFoundError", "ImportError"));
}

TEST(Config, TheSampleIsTakenAsItIs) {
  const Config config = read(kSampleConfig);
  ASSERT_EQ(config.models.size(), 2U);
  EXPECT_EQ(config.models[0].name, "glm-ocr");
  EXPECT_EQ(config.models[0].settings.kind, Kind::kCommand);
  EXPECT_THAT(config.models[0].settings.command,
              ElementsAre("vllm", "serve", "zai-org/GLM-OCR", "--port", "{port}", "--api-key",
                          "{api_key}"));
  EXPECT_EQ(config.models[1].name, "qwen3-8b");
  EXPECT_EQ(config.models[1].path, "/srv/models/qwen3-8b-q4_k_m.gguf");
  EXPECT_THAT(config.models[1].aliases, ElementsAre("gpt-4o-mini"));
  EXPECT_EQ(config.models[1].settings.context, std::nullopt);
}

TEST(Config, ReadsEverySettingOfAModel) {
  const Config config = read(
      "[model.x]\npath = \"m/x.gguf\"\naliases = [\"y\"]\ncontext = 2048\nsequences = 2\n"
      "threads = 3\nbatch = 64\nkv_type = \"q8_0\"\nflash_attention = \"on\"\n"
      "chat_template = \"t.jinja\"\ngpu_layers = 0\ndevices = [\"CUDA0\"]\n"
      "draft = \"d.gguf\"\nadapters = [\"a.gguf\", \"/b.gguf\"]\nttl = 0\npin = true\n"
      "load_timeout = \"90s\"\nload_stall = \"5s\"\nwedge_after = \"1h30m\"\n[model.z]\n"
      "embeddings = true\nsandbox = \"off\"\n");
  ASSERT_EQ(config.models.size(), 2U);
  const ConfiguredModel& model = config.models[0];
  EXPECT_EQ(model.path, "/etc/berth/m/x.gguf");
  EXPECT_THAT(model.aliases, ElementsAre("y"));
  EXPECT_EQ(model.settings.context, 2048U);
  EXPECT_EQ(model.settings.sequences, 2U);
  EXPECT_EQ(model.settings.threads, 3U);
  EXPECT_EQ(model.settings.batch, 64U);
  EXPECT_EQ(model.settings.kv_type, "q8_0");
  EXPECT_EQ(model.settings.flash_attention, "on");
  EXPECT_EQ(model.settings.chat_template, "/etc/berth/t.jinja");
  EXPECT_EQ(model.settings.gpu_layers, 0);
  EXPECT_THAT(model.settings.devices, ElementsAre("CUDA0"));
  EXPECT_FALSE(model.settings.embeddings);
  EXPECT_TRUE(config.models[1].settings.embeddings);
  EXPECT_EQ(model.settings.sandbox, "on");
  EXPECT_EQ(config.models[1].settings.sandbox, "off");
  EXPECT_EQ(model.settings.draft, "/etc/berth/d.gguf");
  EXPECT_THAT(model.settings.adapters, ElementsAre("/etc/berth/a.gguf", "/b.gguf"));
  EXPECT_EQ(model.settings.ttl, 0s);
  EXPECT_TRUE(model.settings.pin);
  EXPECT_EQ(model.settings.load_timeout, 90s);
  EXPECT_EQ(model.settings.load_stall, Duration(5s));
  EXPECT_EQ(model.settings.wedge_after, Duration(90min));
}

TEST(Config, T90_OneEffectiveConfigForEveryLoadPath) {
  const Config config = read(
      "[defaults]\nttl = \"10m\"\nsequences = 2\n[model.own]\nttl = \"1m\"\ncontext = 1024\n"
      "[model.plain]\naliases = [\"p\"]\n");
  // A model of its own section, one with a section that says nothing, and one without.
  EXPECT_EQ(effective_settings(config, "own").ttl, 1min);
  EXPECT_EQ(effective_settings(config, "own").sequences, 2U);
  EXPECT_EQ(effective_settings(config, "own").context, 1024U);
  EXPECT_EQ(effective_settings(config, "plain").ttl, 10min);
  EXPECT_EQ(effective_settings(config, "plain"), config.defaults);
  EXPECT_EQ(effective_settings(config, "found-by-a-scan"), config.defaults);

  EXPECT_EQ(setting(config, "defaults.ttl").source, "/etc/berth/berth.toml:2");
  EXPECT_EQ(setting(config, "model.\"own\".ttl").source, "/etc/berth/berth.toml:5");
  EXPECT_EQ(setting(config, "model.\"own\".sequences").source, "/etc/berth/berth.toml:3");
  EXPECT_EQ(setting(config, "model.\"own\".sequences").value, "2");
  EXPECT_EQ(setting(config, "model.\"own\".kv_type").source, "default");
}

TEST(Config, PathsAreAbsoluteBesideTheFile) {
  const Config config = read(
      "[server]\ngrpc = [\"unix:run/b.sock\"]\nstate_dir = \"../state\"\nrun_dir = \"./run/\"\n"
      "[models]\ndirs = [\"models\", \"/srv//models\"]\n");
  EXPECT_THAT(config.server.grpc, ElementsAre("unix:/etc/berth/run/b.sock"));
  EXPECT_EQ(config.server.state_dir, "/etc/state");
  EXPECT_EQ(config.server.run_dir, "/etc/berth/run");
  EXPECT_THAT(config.model_dirs, ElementsAre("/etc/berth/models", "/srv/models"));
  EXPECT_EQ(setting(config, "server.state_dir").value, "\"/etc/state\"");
}

TEST(Config, ARelativeFileNameIsNamedAsItIsAndAnchoredWhereItLies) {
  const ConfigResult result = parse_config("[server]\nstate_dir = \"state\"\n", "conf/berth.toml");
  ASSERT_TRUE(result.config);
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(result.config->file, here + "/conf/berth.toml");
  EXPECT_EQ(result.config->server.state_dir, here + "/conf/state");
  EXPECT_EQ(setting(*result.config, "server.state_dir").source, "conf/berth.toml:2");
}

TEST(Config, HttpMayBeOff) {
  EXPECT_EQ(read("[server]\nhttp = \"\"\n").server.http, "");
}

TEST(Config, GrpcListensOnTheNetworkToo) {
  const Config config = read(
      "[server]\ngrpc = [\"127.0.0.1:50061\", \"unix:/run/b.sock\", \"[::]:1\"]\n"
      "[auth]\nkeys_file = \"keys\"\n");
  EXPECT_THAT(config.server.grpc, ElementsAre("127.0.0.1:50061", "unix:/run/b.sock", "[::]:1"));
  EXPECT_THAT(config.ignored, IsEmpty());
  EXPECT_EQ(config.auth.keys_file, "/etc/berth/keys");
}

TEST(Config, EverybodyIsServedOnlyWhereItSaysSo) {
  const Config config = read("[server]\nhttp = \"0.0.0.0:1\"\n[auth]\nanonymous = true\n");
  EXPECT_TRUE(config.auth.anonymous);
  EXPECT_FALSE(read("").auth.anonymous);
}

TEST(Config, KnowsWhatOtherMachinesReach) {
  ServerConfig server;
  server.grpc = {"unix:/run/b.sock", "127.0.0.1:1", "10.0.0.1:2"};
  server.http = "0.0.0.0:3";
  EXPECT_THAT(open_addresses(server), ElementsAre("0.0.0.0:3", "10.0.0.1:2"));
  server.http = "";
  EXPECT_THAT(open_addresses(server), ElementsAre("10.0.0.1:2"));
}

TEST(Config, HostsAndOriginsAreKeptAsTheyAreCompared) {
  const Config config = read(
      "[server]\nallowed_hosts = [\"Box.Local\", \"[::1]\"]\n"
      "cors_origins = [\"HTTPS://Example.org:443\", \"http://a:8080\"]\n");
  EXPECT_THAT(config.server.allowed_hosts, ElementsAre("box.local", "[::1]"));
  EXPECT_THAT(config.server.cors_origins, ElementsAre("https://example.org", "http://a:8080"));
}

TEST(Config, WhatIsSetAndNotUsedYetIsNamed) {
  const Config config = read(
      "[server]\nlog_content = true\nlog_keep = 3\n[idle]\nafter = \"1m\"\n"
      "[memory]\nbank_max = \"1GiB\"\n[defaults]\nkeepalive = true\nttl = \"1m\"\n"
      "[model.x]\nkeepalive = false\n");
  EXPECT_THAT(ignored_keys(config),
              ElementsAre("server.log_content", "idle.after", "memory.bank_max",
                          "defaults.keepalive", "model.\"x\".keepalive"));
  EXPECT_EQ(config.ignored[0].value, "true");
  EXPECT_EQ(config.ignored[0].source, "/etc/berth/berth.toml:2");
}

TEST(Config, WhatThisVersionUsesIsNotCalledIgnored) {
  const Config config = read(
      "[server]\nhttp = \"127.0.0.1:0\"\nstate_dir = \"a\"\nrun_dir = \"b\"\nlog_dir = \"c\"\n"
      "max_wait = \"1s\"\ngrace = \"1s\"\nretry_grace = \"1s\"\nswap_drain = \"1s\"\n"
      "log_keep = 2\nmax_body = \"1MiB\"\ndrain_timeout = \"1s\"\nqueue_timeout = \"1s\"\ngrpc = "
      "[\"unix:s\"]\nallowed_hosts = [\"a\"]\ncors_origins = [\"http://a\"]\ntls_cert = "
      "\"c\"\ntls_key = "
      "\"k\"\n[auth]\nkeys_file = \"f\"\nkey_requests_per_minute = 1\nkey_concurrency = 1\n"
      "anonymous = false\n"
      "[models]\ndirs = []\n[memory]\nauto_context_max = 1024\nhost_budget = \"1GiB\"\n"
      "device_budget = \"1GiB\"\nauto_share = 0.4\n[memory.devices.\"GPU-1\"]\n"
      "budget = \"1GiB\"\ndomain = \"own\"\n[model.x]\nkind = \"llama\"\n"
      "path = \"p\"\naliases = [\"y\"]\ncontext = 512\nsequences = 1\nthreads = 1\nbatch = 64\n"
      "pin = true\nkv_type = \"f16\"\nflash_attention = \"off\"\nchat_template = \"t\"\nttl = "
      "\"1m\"\n"
      "load_timeout = \"1m\"\n");
  EXPECT_THAT(ignored_keys(config), IsEmpty());
}

TEST(Config, ABatchHoldsATokenAndItsDraftOfEachSequence) {
  EXPECT_EQ(read("[model.x]\nbatch = 64\nsequences = 64\n").models.at(0).settings.batch, 64U);
  EXPECT_EQ(
      read("[model.x]\nbatch = 144\nsequences = 16\ndraft = \"d\"\n").models.at(0).settings.batch,
      144U);
  // It grows by itself.
  EXPECT_EQ(read("[model.x]\nsequences = 1024\ndraft = \"d\"\n").models.at(0).settings.batch, 0U);
  EXPECT_TRUE(parse_config("[model.x]\nkind = \"command\"\ncommand = [\"a\"]\n[defaults]\n"
                           "sequences = 64\nbatch = 64\n",
                           "c.toml")
                  .problems.empty());
}

TEST(Config, WithoutFlashAttentionThePlainMemoryIsTaken) {
  for (const char* type : {"f32", "f16", "bf16"}) {
    const Config config =
        read("[defaults]\nflash_attention = \"off\"\nkv_type = \"" + std::string(type) +
             "\"\n[model.x]\nsequences = 64\n" + "batch = 16384\n[model.y]\nkv_type = \"q8_0\"\n" +
             "flash_attention = \"auto\"\n");
    EXPECT_EQ(config.defaults.kv_type, type);
  }
}

TEST(Config, ShownConfigurationReadsBackAsTheSame) {
  for (const char* text : {"", kSampleConfig}) {
    const Config config = read(text);
    const std::string shown = show_config(config);
    const ConfigResult again = parse_config(shown, "/etc/berth/berth.toml");
    ASSERT_TRUE(again.config) << shown << all_problems(again);
    EXPECT_EQ(again.config->server, config.server);
    EXPECT_EQ(again.config->model_dirs, config.model_dirs);
    EXPECT_EQ(again.config->models, config.models);
    EXPECT_EQ(again.config->defaults, config.defaults);
    EXPECT_EQ(again.config->memory.auto_context_max, config.memory.auto_context_max);
    ASSERT_EQ(again.config->settings.size(), config.settings.size());
    for (std::size_t i = 0; i < config.settings.size(); ++i) {
      EXPECT_EQ(again.config->settings[i].key, config.settings[i].key);
      EXPECT_EQ(again.config->settings[i].value, config.settings[i].value);
    }
  }
}

TEST(Config, ShowsWhereEachValueCameFrom) {
  const std::string shown = show_config(read("[server]\nlog_keep = 7\n"));
  EXPECT_THAT(shown, HasSubstr("\nlog_keep = 7  # /etc/berth/berth.toml:2\n"));
  EXPECT_THAT(shown, HasSubstr("\ndrain_timeout = \"30s\"  # default\n"));
}

TEST(ConfigFile, ProblemsOfTheFileItself) {
  const ScratchDir dir;
  const struct {
    std::string path;
    const char* says;
  } cases[] = {
      {dir / "missing.toml", "there is no such file"},
      {dir.make_dir("folder"), "this is a directory"},
      {dir.write("large.toml", std::string((std::size_t{1} << 20) + 1, '#')), "larger than"},
      {dir / "pipe", "not a regular file"},
      {"", "no file is named"},
  };
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  for (const auto& wrong : cases) {
    const ConfigResult result = load_config(wrong.path);
    EXPECT_FALSE(result.config) << wrong.path;
    ASSERT_EQ(result.problems.size(), 1U) << wrong.path;
    EXPECT_EQ(result.problems[0].file, wrong.path);
    EXPECT_EQ(result.problems[0].line, 0U);
    EXPECT_THAT(result.problems[0].message, HasSubstr(wrong.says)) << wrong.path;
  }
}

TEST(ConfigFile, WithoutPermissionIsRefused) {
  const ScratchDir dir;
  const std::string path = dir.write("secret.toml", "");
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  const NotRoot somebody;
  if (!NotRoot::is_so()) GTEST_SKIP() << "root may read every file";
  const ConfigResult result = load_config(path);
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(result.problems[0].message, HasSubstr("permission denied"));
}

TEST(ConfigFile, IsReadWithItsOwnFolderAsAnchor) {
  const ScratchDir dir;
  const std::string path = dir.write("berth.toml", "[models]\ndirs = [\"m\"]\n");
  const ConfigResult result = load_config(path);
  ASSERT_TRUE(result.config) << all_problems(result);
  EXPECT_THAT(result.config->model_dirs, ElementsAre(dir / "m"));
  EXPECT_EQ(result.config->file, path);
}

TEST(DemoConfig, IsInsideItsDirectory) {
  const ScratchDir dir;
  const ConfigResult result = demo_config(dir.path());
  ASSERT_TRUE(result.config) << all_problems(result);
  const Config& config = *result.config;
  EXPECT_EQ(config.file, "");
  EXPECT_THAT(config.server.grpc, ElementsAre("unix:" + (dir / "run/berth.sock")));
  EXPECT_EQ(config.server.http, "127.0.0.1:11500");
  EXPECT_EQ(config.server.state_dir, dir / "state");
  EXPECT_EQ(config.server.run_dir, dir / "run");
  EXPECT_EQ(config.server.log_dir, dir / "log");
  EXPECT_THAT(config.model_dirs, ElementsAre(dir / "models"));
  EXPECT_EQ(setting(config, "server.http").source, "demo");
  EXPECT_EQ(setting(config, "server.log_keep").source, "default");
  EXPECT_THAT(config.ignored, IsEmpty());
}

TEST(DemoConfig, TakesAFileOnTop) {
  const ScratchDir dir;
  const std::string file = dir.write(
      "berth.toml", "[server]\nhttp = \"127.0.0.1:0\"\n[model.demo]\npath = \"models/x.gguf\"\n");
  const ConfigResult result = demo_config(dir.path());
  ASSERT_TRUE(result.config) << all_problems(result);
  const Config& config = *result.config;
  EXPECT_EQ(config.file, file);
  EXPECT_EQ(config.server.http, "127.0.0.1:0");
  EXPECT_EQ(config.server.state_dir, dir / "state");
  EXPECT_EQ(setting(config, "server.http").source, file + ":2");
  EXPECT_EQ(setting(config, "server.state_dir").source, "demo");
  ASSERT_EQ(config.models.size(), 1U);
  EXPECT_EQ(config.models[0].path, dir / "models/x.gguf");
}

TEST(DemoConfig, ReportsProblemsOfItsFile) {
  const ScratchDir dir;
  const std::string file = dir.write("berth.toml", "[server]\nhtp = \"\"\n");
  const ConfigResult result = demo_config(dir.path());
  EXPECT_FALSE(result.config);
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_EQ(result.problems[0].file, file);
  EXPECT_EQ(result.problems[0].line, 2U);

  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  const ConfigResult folder = demo_config(dir.path());
  ASSERT_EQ(folder.problems.size(), 1U);
  EXPECT_THAT(folder.problems[0].message, HasSubstr("directory"));
}

TEST(DemoConfig, SaysHowMuchTheDirectoryIsTooLong) {
  const ScratchDir dir;
  const std::string deep = dir / std::string(120 - dir.path().size(), 'd');
  const ConfigResult result = demo_config(deep);
  EXPECT_FALSE(result.config);
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(result.problems[0].message, HasSubstr("has 136 bytes"));
  EXPECT_THAT(result.problems[0].message, HasSubstr("at most 107"));
  EXPECT_THAT(result.problems[0].message, HasSubstr("shorter by 29 bytes"));

  // A socket elsewhere helps.
  std::filesystem::create_directory(deep);
  std::filesystem::create_directory(deep + "/models");
  const std::string file = dir.write(deep.substr(dir.path().size() + 1) + "/berth.toml",
                                     "[server]\ngrpc = [\"unix:/run/b.sock\"]\n");
  const ConfigResult with_file = demo_config(deep);
  ASSERT_TRUE(with_file.config) << all_problems(with_file);
  EXPECT_THAT(with_file.config->server.grpc, ElementsAre("unix:/run/b.sock"));
}

TEST(DemoConfig, ARelativeDirectoryBecomesAbsolute) {
  const ConfigResult result = demo_config("demo");
  const std::string here = std::filesystem::current_path().string();
  if (here.size() > 80) GTEST_SKIP() << "the build directory's path is too long for a socket";
  ASSERT_TRUE(result.config) << all_problems(result);
  EXPECT_EQ(result.config->server.state_dir, here + "/demo/state");
}

}  // namespace
}  // namespace berth::catalog
