#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "supervisor/catalog/config.h"

namespace berth::catalog {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Case {
  const char* name;
  const char* text;
  std::uint32_t line;
  const char* key;
  const char* says;
  const char* says_too = "";
};

class WrongConfig : public ::testing::TestWithParam<Case> {};

TEST_P(WrongConfig, NamesPlaceKeyAndWhatWasExpected) {
  const Case& wrong = GetParam();
  const ConfigResult result = parse_config(wrong.text, "/etc/berth/berth.toml");
  EXPECT_FALSE(result.config);
  ASSERT_EQ(result.problems.size(), 1U) << result.problems[1].to_string();
  const ConfigProblem& problem = result.problems[0];
  EXPECT_EQ(problem.file, "/etc/berth/berth.toml");
  EXPECT_EQ(problem.line, wrong.line) << problem.to_string();
  EXPECT_EQ(problem.key, wrong.key);
  EXPECT_THAT(problem.message, AllOf(HasSubstr(wrong.says), HasSubstr(wrong.says_too)));
}

constexpr Case kCases[] = {
    // Keys and sections.
    {"unknown_key", "[server]\ndrain_timeot = \"30s\"\n", 2, "server.drain_timeot", "unknown key",
     "did you mean `drain_timeout`?"},
    {"key_of_another_section", "[server]\nttl = \"1m\"\n", 2, "server.ttl", "unknown key here",
     "did you mean `defaults.ttl`?"},
    {"misspelt_key_of_another_section", "[models]\nqueue_timeot = \"1m\"\n", 2,
     "models.queue_timeot", "unknown key", "did you mean `server.queue_timeout`?"},
    {"key_like_no_other", "[models]\nzzzzzzzz = 1\n", 2, "models.zzzzzzzz",
     "known keys here are dirs"},
    {"key_at_the_top", "http = \"127.0.0.1:1\"\n", 1, "http", "at the top of the file",
     "did you mean `server.http`?"},
    {"unknown_section", "\n[sever]\nhttp = \"\"\n", 2, "sever", "unknown section",
     "did you mean `[server]`?"},
    {"section_like_no_other", "[zzzzzzzz]\n", 1, "zzzzzzzz", "known sections are server, auth"},
    {"models_with_an_s", "[models.\"x\"]\npath = \"x.gguf\"\n", 1, "models.x",
     "`[model.\"x\"]`, without an s"},
    {"own_key_in_defaults", "[defaults]\npath = \"x.gguf\"\n", 2, "defaults.path",
     "each model has its own"},
    {"unknown_key_of_a_model", "[model.\"a.b\"]\ncontxt = 1024\n", 2, "model.\"a.b\".contxt",
     "did you mean `context`?"},
    {"unknown_key_of_a_device", "[memory.devices.\"GPU-1\"]\nbudgt = \"1GiB\"\n", 2,
     "memory.devices.\"GPU-1\".budgt", "did you mean `budget`?"},
    {"section_that_is_a_value", "server = 5\n", 1, "server", "expected the section [server]",
     "found the integer 5"},
    {"section_that_is_a_list", "[[server]]\nhttp = \"\"\n", 1, "server",
     "expected the section [server]", "found a list"},
    {"model_that_is_a_value", "[model]\nx = \"y.gguf\"\n", 2, "model.\"x\"",
     "expected a section [model.\"NAME\"]", "found the string \"y.gguf\""},
    {"models_as_a_list", "[[model]]\nname = \"x\"\n", 1, "model",
     "expected a section [model.\"NAME\"]", "found a list"},
    {"devices_that_are_a_value", "[memory]\ndevices = \"GPU\"\n", 2, "memory.devices",
     "expected a section [memory.devices.\"ID\"]"},
    {"empty_model_name", "[model.\"\"]\nttl = \"1m\"\n", 1, "model.\"\"", "must not be empty"},
    {"model_name_with_control_characters", "[model.\"a\\u0007\"]\nttl = \"1m\"\n", 1, "model.\"a\"",
     "printable characters"},

    // Types and ranges.
    {"switch_with_a_string", "[server]\nlog_content = \"yes\"\n", 2, "server.log_content",
     "expected true or false", "found the string \"yes\""},
    {"count_with_a_string", "[server]\nlog_keep = \"5\"\n", 2, "server.log_keep",
     "expected a whole number from 1 to 1000", "found the string \"5\""},
    {"count_with_a_fraction", "[server]\nlog_keep = 1.5\n", 2, "server.log_keep",
     "expected a whole number", "found the number 1.5"},
    {"count_too_small", "[server]\nlog_keep = 0\n", 2, "server.log_keep", "from 1 to 1000",
     "found the integer 0"},
    {"count_negative", "[defaults]\nsequences = -1\n", 2, "defaults.sequences", "from 1 to 1024",
     "found the integer -1"},
    {"count_too_large", "[model.x]\nsequences = 1025\n", 2, "model.\"x\".sequences",
     "from 1 to 1024", "found the integer 1025"},
    {"batch_too_small", "[model.x]\nbatch = 63\n", 2, "model.\"x\".batch", "from 64 to 16384",
     "found the integer 63"},
    {"batch_too_large", "[defaults]\nbatch = 16385\n", 2, "defaults.batch", "from 64 to 16384",
     "found the integer 16385"},
    {"count_or_word", "[defaults]\ncontext = \"big\"\n", 2, "defaults.context",
     "expected \"auto\" or a whole number from 16 to 16777216", "found the string \"big\""},
    {"fraction_out_of_range", "[memory]\nauto_share = 1.5\n", 2, "memory.auto_share",
     "expected a number from 0.01 to 1", "found the number 1.5"},
    {"fraction_not_finite", "[memory]\nauto_share = nan\n", 2, "memory.auto_share",
     "expected a number"},
    {"size_without_a_unit", "[server]\nmax_body = \"64\"\n", 2, "server.max_body",
     "expected a size from \"1KiB\" to \"1GiB\"", "found the string \"64\""},
    {"size_with_a_decimal_unit", "[server]\nmax_body = \"64MB\"\n", 2, "server.max_body",
     "expected a size"},
    {"size_as_a_number", "[server]\nmax_body = 64\n", 2, "server.max_body",
     "found the integer 64; write the number and its unit in quotes"},
    {"size_out_of_range", "[server]\nmax_body = \"2GiB\"\n", 2, "server.max_body", "to \"1GiB\""},
    {"size_that_overflows", "[memory]\nhost_budget = \"99999999999TiB\"\n", 2, "memory.host_budget",
     "expected \"auto\" or a size"},
    {"duration_without_a_unit", "[server]\ndrain_timeout = \"30\"\n", 2, "server.drain_timeout",
     "expected a duration from", "found the string \"30\""},
    {"duration_in_words", "[server]\ndrain_timeout = \"30 seconds\"\n", 2, "server.drain_timeout",
     "expected a duration"},
    {"duration_as_a_number", "[server]\ndrain_timeout = 30\n", 2, "server.drain_timeout",
     "found the integer 30; write the number and its unit in quotes"},
    {"duration_of_nothing", "[server]\nqueue_timeout = \"0\"\n", 2, "server.queue_timeout",
     "from \"1ms\""},
    {"duration_as_zero", "[server]\nqueue_timeout = 0\n", 2, "server.queue_timeout",
     "from \"1ms\""},
    {"duration_out_of_range", "[defaults]\nttl = \"87000h\"\n", 2, "defaults.ttl", "\"8760h\""},
    {"choice", "[defaults]\nkv_type = \"fp16\"\n", 2, "defaults.kv_type",
     "expected \"f32\", \"f16\"", "did you mean \"f16\"?"},
    {"choice_as_a_switch", "[defaults]\nflash_attention = true\n", 2, "defaults.flash_attention",
     "expected \"auto\", \"on\" or \"off\"", "found the boolean true"},
    {"domain", "[memory.devices.a]\ndomain = \"shared\"\n", 2, "memory.devices.\"a\".domain",
     "expected \"auto\" or \"own\""},
    {"path_as_a_number", "[server]\nstate_dir = 5\n", 2, "server.state_dir", "expected a path",
     "found the integer 5"},
    {"path_that_is_empty", "[server]\nstate_dir = \"\"\n", 2, "server.state_dir",
     "expected a path"},
    {"path_with_a_tilde", "[server]\nstate_dir = \"~/berth\"\n", 2, "server.state_dir",
     "`~` is not expanded"},
    {"path_with_control_characters", "[server]\nstate_dir = \"/a\\nb\"\n", 2, "server.state_dir",
     "control characters"},
    {"chat_template_that_is_unknown", "[model.x]\nchat_template = \"builtin:chatmll\"\n", 2,
     "model.\"x\".chat_template", "did you mean \"builtin:chatml\"?", ", gemma, "},
    {"chat_template_without_a_name", "[defaults]\nchat_template = \"builtin:\"\n", 2,
     "defaults.chat_template", "found the string \"builtin:\"", ", gemma, "},
    {"a_date", "[server]\nstate_dir = 2024-05-06\n", 2, "server.state_dir",
     "found the date or time 2024-05-06"},

    // Lists.
    {"list_as_a_string", "[models]\ndirs = \"/srv\"\n", 2, "models.dirs",
     "expected a list of paths", "put it in [ ]"},
    {"element_of_a_wrong_type", "[models]\ndirs = [\"/srv\",\n 5]\n", 3, "models.dirs[1]",
     "expected a path", "found the integer 5"},
    {"element_that_is_empty", "[models]\ndirs = [\"\"]\n", 2, "models.dirs[0]", "expected a path"},
    {"element_twice", "[models]\ndirs = [\"/srv\",\n\"/srv/\"]\n", 3, "models.dirs[1]",
     "listed twice"},
    {"nested_list", "[defaults]\nfatal_exceptions = [[\"a\"]]\n", 2, "defaults.fatal_exceptions[0]",
     "expected a string", "found a list"},
    {"alias_that_is_no_name", "[model.x]\naliases = [\" x\"]\n", 2, "model.\"x\".aliases[0]",
     "printable characters"},
    {"environment_of_a_wrong_type",
     "[model.x]\nkind = \"command\"\ncommand = [\"a\"]\nenvironment = { A = 1 }\n", 4,
     "model.\"x\".environment.A", "expected a string", "found the integer 1"},
    {"memory_of_a_wrong_size",
     "[model.x]\nkind = \"command\"\ncommand = [\"a\"]\nmemory = { host = \"lots\" }\n", 4,
     "model.\"x\".memory.host", "expected a size"},
    {"probe", "[model.x]\nkind = \"command\"\ncommand = [\"a\"]\nprobe = \"health\"\n", 4,
     "model.\"x\".probe", "expected \"completion\", \"embedding\" or \"path:/"},

    // Addresses.
    {"http_without_a_port", "[server]\nhttp = \"127.0.0.1\"\n", 2, "server.http",
     "expected \"HOST:PORT\"", "it has no port"},
    {"http_on_a_socket", "[server]\nhttp = \"unix:/run/x.sock\"\n", 2, "server.http",
     "expected \"HOST:PORT\""},
    {"grpc_as_a_string", "[server]\ngrpc = \"unix:/run/x.sock\"\n", 2, "server.grpc",
     "expected a list", "put it in [ ]"},
    {"grpc_without_a_scheme", "[server]\ngrpc = [\"/run/x.sock\"]\n", 2, "server.grpc[0]",
     "expected \"unix:PATH\" or \"HOST:PORT\""},
    {"grpc_without_a_path", "[server]\ngrpc = [\"unix:\"]\n", 2, "server.grpc[0]",
     "its path is empty"},
    {"grpc_of_nothing", "[server]\ngrpc = []\n", 2, "server.grpc", "at least one \"unix:PATH\""},
    {"grpc_on_the_network_alone", "[server]\ngrpc = [\"127.0.0.1:1\"]\n", 2, "server.grpc",
     "at least one \"unix:PATH\"", "administered"},
    {"grpc_open_without_keys", "[server]\ngrpc = [\"unix:/s\", \"0.0.0.0:1\"]\n", 2, "server.grpc",
     "can be reached from other machines", "auth.keys_file"},
    {"http_open_without_keys", "[server]\n\nhttp = \"[::]:80\"\n", 3, "server.http",
     "can be reached from other machines", "auth.anonymous = true"},
    {"host_with_a_port", "[server]\nallowed_hosts = [\"a\", \"b:1\"]\n", 2,
     "server.allowed_hosts[1]", "a host name", "it has a port"},
    {"host_with_a_scheme", "[server]\nallowed_hosts = [\"http://b\"]\n", 2,
     "server.allowed_hosts[0]", "it has a scheme"},
    {"T95_origin_of_everybody", "[server]\ncors_origins = [\"*\"]\n", 2, "server.cors_origins[0]",
     "every page would be one"},
    {"T95_origin_of_nobody", "[server]\ncors_origins = [\"null\"]\n", 2, "server.cors_origins[0]",
     "http:// or https://"},
    {"origin_with_a_path", "[server]\ncors_origins = [\"https://a/b\"]\n", 2,
     "server.cors_origins[0]", "scheme://host[:port]"},
    {"socket_path_too_long",
     "[server]\ngrpc = "
     "[\"unix:/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"]\n",
     2, "server.grpc[0]", "has 115 bytes", "at most 107"},

    // What must fit together.
    {"certificate_without_a_key", "[server]\ntls_cert = \"a.pem\"\n", 2, "server.tls_cert",
     "needs `tls_key`"},
    {"key_without_a_certificate", "[server]\ntls_key = \"a.pem\"\n", 2, "server.tls_key",
     "needs `tls_cert`"},
    {"quantized_memory_without_flash_attention",
     "[model.x]\nflash_attention = \"off\"\nkv_type = \"q8_0\"\n", 3, "model.\"x\".kv_type",
     "kv_type = \"q8_0\" does not go with flash_attention = \"off\"", "\"auto\" or \"on\""},
    {"quantized_memory_without_flash_attention_in_defaults",
     "[defaults]\nkv_type = \"iq4_nl\"\nflash_attention = \"off\"\n[model.x]\nttl = \"1m\"\n", 2,
     "defaults.kv_type", "kv_type = \"iq4_nl\" does not go with flash_attention = \"off\""},
    {"flash_attention_off_with_the_defaults_quantized_memory",
     "[defaults]\nkv_type = \"q4_0\"\n[model.x]\nflash_attention = \"off\"\n", 4,
     "model.\"x\".flash_attention", "kv_type = \"q4_0\" does not go"},
    {"batch_below_the_sequences", "[model.x]\nsequences = 100\nbatch = 64\n", 3,
     "model.\"x\".batch", "batch = 64 is too small for sequences = 100;", "at least 100"},
    {"batch_below_the_drafts", "[model.x]\nbatch = 64\ndraft = \"d.gguf\"\nsequences = 16\n", 2,
     "model.\"x\".batch", "too small for sequences = 16 with a draft", "at least 144"},
    {"batch_of_the_defaults_below_the_drafts",
     "[defaults]\nbatch = 64\nsequences = 16\n[model.x]\ndraft = \"d.gguf\"\n", 5,
     "model.\"x\".draft", "batch = 64 is too small", "at least 144"},
    {"batch_below_the_sequences_in_defaults",
     "[defaults]\nsequences = 65\nbatch = 64\n[model.x]\nttl = \"1m\"\n", 3, "defaults.batch",
     "batch = 64 is too small for sequences = 65;", "at least 65"},
    {"embeddings_with_a_draft", "[model.x]\nembeddings = true\ndraft = \"d.gguf\"\n", 3,
     "model.\"x\".draft", "does not go with embeddings = true", "leave one of them out"},
    {"command_missing", "[model.x]\nkind = \"command\"\n", 1, "model.\"x\".command",
     "expected the program"},
    {"command_empty", "[model.x]\nkind = \"command\"\ncommand = []\n", 3, "model.\"x\".command",
     "expected the program"},
    {"command_without_a_program", "[model.x]\nkind = \"command\"\ncommand = [\"\"]\n", 3,
     "model.\"x\".command", "expected the program"},
    {"command_of_a_wrong_type", "[model.x]\nkind = \"command\"\ncommand = [1]\n", 3,
     "model.\"x\".command[0]", "expected a string"},
    {"command_with_an_unknown_placeholder",
     "[model.x]\nkind = \"command\"\ncommand = [\"a\",\n\"--port={Port}\",\n\"--host={host}\"]\n",
     5, "model.\"x\".command[2]", "`{host}` is not known; `{port}`"},
    {"environment_with_an_unknown_placeholder",
     "[model.x]\nkind = \"command\"\ncommand = [\"a\"]\nenvironment = { A = \"{prot}\" }\n", 4,
     "model.\"x\".environment.\"A\"", "`{prot}` is not known"},
    {"command_of_a_llama", "[model.x]\ncommand = [\"a\"]\n", 2, "model.\"x\".command",
     "only for models with `kind = \"command\"`"},
    {"path_of_a_command", "[model.x]\nkind = \"command\"\ncommand = [\"a\"]\npath = \"/x\"\n", 4,
     "model.\"x\".path", "only for models with `kind = \"llama\"`"},
    {"alias_twice", "[model.a]\naliases = [\"z\"]\n[model.b]\naliases = [\"y\",\n \"z\"]\n", 5,
     "model.\"b\".aliases[1]", "already an alias of model \"a\""},
    {"alias_twice_in_one", "[model.a]\naliases = [\"z\", \"z\"]\n", 2, "model.\"a\".aliases[1]",
     "listed twice"},
    {"alias_that_is_a_model", "[model.a]\naliases = [\"b\"]\n[model.b]\nttl = \"1m\"\n", 2,
     "model.\"a\".aliases[0]", "\"b\" is the name of a model"},
    {"alias_that_is_its_model", "[model.a]\naliases = [\"a\"]\n", 2, "model.\"a\".aliases[0]",
     "this model itself"},

    // The text.
    {"model_twice", "[model.a]\nttl = \"1m\"\n[model.a]\nttl = \"2m\"\n", 3, "", "redefine"},
    {"key_twice", "[server]\nhttp = \"\"\nhttp = \"\"\n", 3, "", "redefine"},
    {"no_value", "[server]\nhttp =\n", 2, "", "value"},
    {"open_string", "[server]\nhttp = \"127\n", 2, "", "string"},
    {"open_section", "[server\nhttp = \"\"\n", 1, "", ""},
    {"not_utf8", "[server]\nhttp = \"\xff\"\n", 2, "", "not valid UTF-8"},
};

INSTANTIATE_TEST_SUITE_P(ConfigProblems, WrongConfig, ::testing::ValuesIn(kCases),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(ConfigProblems, AllAreReportedInTheOrderOfTheFile) {
  const ConfigResult result = parse_config(
      "[server]\nhtp = 1\nlog_keep = 0\n[model.x]\nttl = 5\n[idel]\nafter = \"1m\"\n", "b.toml");
  EXPECT_FALSE(result.config);
  std::vector<std::string> places;
  for (const ConfigProblem& problem : result.problems) {
    places.push_back(std::to_string(problem.line) + " " + problem.key);
  }
  EXPECT_THAT(places, ::testing::ElementsAre("2 server.htp", "3 server.log_keep",
                                             "5 model.\"x\".ttl", "6 idel"));
}

TEST(ConfigProblems, AreAtMostFifty) {
  std::string text = "[server]\n";
  for (int i = 0; i < 80; ++i) text += "zzz" + std::to_string(i) + " = 1\n";
  const ConfigResult result = parse_config(text, "b.toml");
  EXPECT_EQ(result.problems.size(), 50U);
  EXPECT_EQ(result.problems_left_out, 30U);
}

TEST(ConfigProblems, AreWrittenLikeThoseOfACompiler) {
  const ConfigResult result = parse_config("[server]\nlog_keep = 0\n", "conf/berth.toml");
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_EQ(result.problems[0].to_string(),
            "conf/berth.toml:2: server.log_keep: expected a whole number from 1 to 1000, found the "
            "integer 0");
}

TEST(ConfigProblems, ALongStringIsShownShort) {
  const ConfigResult result =
      parse_config("[server]\nlog_keep = \"" + std::string(100'000, 'x') + "\"\n", "b.toml");
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_LT(result.problems[0].message.size(), 300U);
}

TEST(ConfigProblems, TooManyElementsAreRefused) {
  std::string text = "[models]\ndirs = [";
  for (int i = 0; i < 5000; ++i) text += "\"/srv/" + std::to_string(i) + "\",";
  const ConfigResult result = parse_config(text + "]\n", "b.toml");
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(result.problems[0].message, HasSubstr("more than 4096 elements"));
}

}  // namespace
}  // namespace berth::catalog
