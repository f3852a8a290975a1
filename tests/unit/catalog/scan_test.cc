#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "supervisor/catalog/catalog.h"
#include "tests/models/broken_models.h"
#include "tests/models/random_model.h"
#include "tests/unit/catalog/scratch_dir.h"

namespace berth::catalog {
namespace {

namespace fs = std::filesystem;
using test_models::ModelOptions;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Scanning : public ::testing::Test {
 protected:
  // Writes a model below the scratch directory.
  std::string put(const std::string& name, const ModelOptions& options = {}) {
    const std::string path = dir_ / name;
    fs::create_directories(fs::path(path).parent_path());
    const auto files = test_models::write_model(options, path);
    EXPECT_TRUE(files) << files.error().message;
    return files ? files->front() : path;
  }

  Config config(const std::string& text = "[models]\ndirs = [\"models\"]\n") {
    const ConfigResult result = parse_config(text, dir_ / "berth.toml");
    EXPECT_TRUE(result.config) << result.problems.front().to_string();
    return result.config.value_or(Config());
  }

  static std::vector<std::string> names(const ScanResult& result) {
    std::vector<std::string> names;
    for (const auto& model : result.catalog.models()) names.push_back(model->name);
    return names;
  }

  static const Model& model(const ScanResult& result, std::string_view name) {
    const auto found = result.catalog.find(name);
    EXPECT_TRUE(found) << found.error().message;
    static const Model none;
    return found ? **found : none;
  }

  ScratchDir dir_;
};

TEST_F(Scanning, EveryGgufFileIsAModelNamedByItsStem) {
  put("models/alpha.gguf", {.name = "Alpha", .context = 2048});
  put("models/sub/beta.gguf", {.context = 65536, .chat_template = std::nullopt});
  put("models/sub/deeper/gamma.gguf");
  dir_.write("models/notes.txt", "no model");
  dir_.write("models/.hidden.gguf", "no model");
  const ScanResult result = scan(config());
  EXPECT_THAT(names(result), ElementsAre("alpha", "beta"));
  EXPECT_THAT(result.problems, IsEmpty());
  const Model& alpha = model(result, "alpha");
  EXPECT_EQ(alpha.problem, "");
  EXPECT_EQ(alpha.path, dir_ / "models/alpha.gguf");
  EXPECT_THAT(alpha.shards, ElementsAre(alpha.path));
  EXPECT_EQ(alpha.architecture, "llama");
  EXPECT_EQ(alpha.title, "Alpha");
  EXPECT_EQ(alpha.quantization, "F16");
  EXPECT_GT(alpha.parameters, 0U);
  EXPECT_EQ(alpha.file_bytes, fs::file_size(alpha.path));
  EXPECT_EQ(alpha.declared_context, 2048U);
  EXPECT_EQ(alpha.served_context, 2048U);
  EXPECT_TRUE(alpha.can_chat);
  EXPECT_NE(alpha.header_hash, 0U);
  EXPECT_EQ(alpha.settings, config().defaults);
  EXPECT_FALSE(model(result, "beta").can_chat);
  EXPECT_EQ(model(result, "beta").served_context, 32768U);
}

TEST_F(Scanning, ASplitModelIsOneModel) {
  put("models/big.gguf", {.shards = 3});
  const ScanResult result = scan(config());
  EXPECT_THAT(names(result), ElementsAre("big"));
  EXPECT_EQ(model(result, "big").problem, "");
  EXPECT_EQ(model(result, "big").shards.size(), 3U);
}

TEST_F(Scanning, T13_AMissingShardIsNamed) {
  const std::string first = put("models/big.gguf", {.shards = 3});
  fs::remove(dir_ / "models/big-00002-of-00003.gguf");
  const ScanResult result = scan(config());
  EXPECT_THAT(names(result), ElementsAre("big"));
  EXPECT_THAT(model(result, "big").problem, HasSubstr("big-00002-of-00003.gguf"));

  fs::remove(first);
  const ScanResult without_first = scan(config());
  EXPECT_THAT(names(without_first), ElementsAre("big"));
  EXPECT_THAT(model(without_first, "big").problem,
              AllOf(HasSubstr("big-00003-of-00003.gguf"), HasSubstr("first part")));
}

TEST_F(Scanning, BrokenFilesAreModelsWithAReason) {
  fs::create_directories(dir_ / "models");
  put("models/good.gguf");
  for (const test_models::FaultInfo& fault : test_models::all_faults()) {
    const auto path = test_models::write_broken_model(
        fault.fault, dir_ / ("models/" + std::string(fault.name) + ".gguf"));
    ASSERT_TRUE(path) << path.error().message;
  }
  const ScanResult result = scan(config());
  EXPECT_EQ(names(result).size(), test_models::kFaults + 1);
  EXPECT_EQ(model(result, "good").problem, "");
  for (const test_models::FaultInfo& fault : test_models::all_faults()) {
    if (!fault.header_shows) continue;
    const Model& broken = model(result, fault.name);
    EXPECT_THAT(broken.problem,
                AllOf(HasSubstr(fault.name), HasSubstr(fault.reader_says), HasSubstr("; ")))
        << fault.name;
    EXPECT_TRUE(broken.problem.ends_with('.')) << broken.problem;
    EXPECT_EQ(broken.problem.find('\n'), std::string::npos);
  }
}

TEST_F(Scanning, LinksAreFollowedAndEachFileCountsOnce) {
  const std::string real = put("elsewhere/real.gguf");
  dir_.make_dir("models");
  fs::create_symlink(real, dir_ / "models/a.gguf");
  fs::create_symlink(real, dir_ / "models/b.gguf");
  fs::create_symlink(dir_ / "nowhere.gguf", dir_ / "models/dangling.gguf");
  fs::create_directory_symlink(dir_ / "models", dir_ / "models/loop");
  const ScanResult result = scan(config());
  EXPECT_THAT(names(result), ElementsAre("a", "dangling"));
  EXPECT_THAT(model(result, "dangling").problem, HasSubstr("no such file"));
}

TEST_F(Scanning, TheFirstDirectoryWinsAName) {
  put("one/same.gguf", {.context = 512});
  put("two/same.gguf", {.context = 1024});
  const ScanResult result = scan(config("[models]\ndirs = [\"two\", \"one\"]\n"));
  EXPECT_THAT(names(result), ElementsAre("same"));
  EXPECT_EQ(model(result, "same").declared_context, 1024U);
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(result.problems[0], AllOf(HasSubstr("one/same.gguf is not used"),
                                        HasSubstr("two/same.gguf has the same name")));
}

TEST_F(Scanning, ASectionOverridesByNameOrAddsByPath) {
  put("models/found.gguf");
  put("models/file-q8.gguf");
  put("elsewhere/other.gguf");
  const ScanResult result =
      scan(config("[models]\ndirs = [\"models\"]\n[defaults]\nsequences = 2\n"
                  "[model.found]\ncontext = 256\naliases = [\"f\"]\n"
                  "[model.nice]\npath = \"models/file-q8.gguf\"\n"
                  "[model.more]\npath = \"elsewhere/other.gguf\"\nttl = \"1m\"\n"));
  // The file of [model.nice] is not a second time there under its own name.
  EXPECT_THAT(names(result), ElementsAre("found", "more", "nice"));
  EXPECT_EQ(model(result, "f").name, "found");
  EXPECT_EQ(model(result, "f").served_context, 256U);
  EXPECT_EQ(model(result, "f").settings.sequences, 2U);
  EXPECT_EQ(model(result, "more").settings.ttl, std::chrono::minutes(1));
  EXPECT_THAT(result.problems, IsEmpty());
}

TEST_F(Scanning, ASectionWithoutPathMustBeFound) {
  dir_.make_dir("models");
  const ScanResult result =
      scan(config("[models]\ndirs = [\"models\"]\n[model.gone]\nttl = \"1m\"\n"));
  EXPECT_THAT(model(result, "gone").problem,
              AllOf(HasSubstr("set `path`"), HasSubstr("gone.gguf")));
}

TEST_F(Scanning, AConfiguredFileThatIsMissing) {
  dir_.make_dir("models");
  const ScanResult result =
      scan(config("[models]\ndirs = [\"models\"]\n[model.x]\npath = \"y/z.gguf\"\n"));
  EXPECT_THAT(model(result, "x").problem,
              AllOf(HasSubstr("z.gguf"), HasSubstr("no such file"), HasSubstr("`path`")));
}

TEST_F(Scanning, L27_ACommandMustBeToldWhereToListen) {
  const ScanResult result =
      scan(config("[models]\ndirs = []\n[model.vllm]\nkind = \"command\"\ncommand = [\"vllm\"]\n"
                  "[model.embedder]\nkind = \"command\"\ncommand = [\"e\", \"--uds={socket}\"]\n"
                  "probe = \"embedding\"\n"
                  "[model.script]\nkind = \"command\"\ncommand = [\"s\"]\n"
                  "environment = { PORT = \"{port}\" }\n"));
  EXPECT_THAT(model(result, "vllm").problem, HasSubstr("does not say where to listen"));
  EXPECT_EQ(model(result, "embedder").problem, "");
  EXPECT_TRUE(model(result, "embedder").can_embed);
  EXPECT_FALSE(model(result, "embedder").can_chat);
  EXPECT_EQ(model(result, "script").problem, "");
  EXPECT_TRUE(model(result, "script").can_chat);
}

TEST_F(Scanning, AWindowThatNobodyKnowsIsNone) {
  dir_.make_dir("models");
  std::ofstream(dir_ / "models/cut.gguf") << "GGUF";
  const ScanResult result =
      scan(config("[models]\ndirs = [\"models\"]\n[model.gone]\npath = \"gone.gguf\"\n"
                  "[model.program]\nkind = \"command\"\ncommand = [\"p\", \"{port}\"]\n"));
  EXPECT_NE(model(result, "cut").problem, "");
  for (const char* name : {"cut", "gone", "program"}) {
    EXPECT_EQ(model(result, name).served_context, 0U) << name;
  }
}

TEST_F(Scanning, ProjectorsAndAdaptersAreListedWithWhatTheyAre) {
  auto projector = test_models::make_model({.name = "vision"});
  ASSERT_TRUE(projector);
  projector->set_text("general.architecture", "clip");
  fs::create_directories(dir_ / "models");
  ASSERT_TRUE(projector->write(dir_ / "models/mmproj-vision.gguf"));
  auto adapter = test_models::make_model({.name = "lora"});
  ASSERT_TRUE(adapter);
  adapter->set_text("general.type", "adapter");
  ASSERT_TRUE(adapter->write(dir_ / "models/lora.gguf"));
  put("models/real.gguf");

  const ScanResult result = scan(config());
  EXPECT_THAT(names(result), ElementsAre("lora", "mmproj-vision", "real"));
  EXPECT_THAT(model(result, "mmproj-vision").problem, HasSubstr("is a projector"));
  EXPECT_THAT(model(result, "lora").problem, HasSubstr("name it in `adapters`"));
  EXPECT_THAT(model(result, "real").problem, IsEmpty());
  EXPECT_THAT(result.problems, IsEmpty());
}

TEST_F(Scanning, DirectoriesThatCannotBeReadAreReported) {
  dir_.write("file", "");
  const ScanResult result = scan(config("[models]\ndirs = [\"missing\", \"file\"]\n"));
  EXPECT_THAT(names(result), IsEmpty());
  ASSERT_EQ(result.problems.size(), 2U);
  EXPECT_THAT(result.problems[0], AllOf(HasSubstr("missing"), HasSubstr("cannot be read")));
}

TEST_F(Scanning, FilesThatMayNotBeReadAreModelsWithAReason) {
  const std::string path = put("models/secret.gguf");
  dir_.make_dir("models/closed");
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  ASSERT_EQ(::chmod((dir_ / "models/closed").c_str(), 0), 0);
  ASSERT_EQ(::chmod(dir_.path().c_str(), 0755), 0);
  const Config settings = config();
  const NotRoot somebody;
  if (!NotRoot::is_so()) GTEST_SKIP() << "root may read every file";
  const ScanResult result = scan(settings);
  EXPECT_THAT(model(result, "secret").problem,
              AllOf(HasSubstr("secret.gguf"), HasSubstr("permission"), HasSubstr("readable for")));
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(result.problems[0], AllOf(HasSubstr("closed"), HasSubstr("cannot be read")));
}

TEST_F(Scanning, NamesThatCannotBeNamesAreReported) {
  put("models/good.gguf");
  dir_.write("models/bad\x01name.gguf", "x");
  dir_.write("models/bad\xffutf.gguf", "x");
  const ScanResult result = scan(config());
  EXPECT_THAT(names(result), ElementsAre("good"));
  ASSERT_EQ(result.problems.size(), 2U);
  EXPECT_THAT(result.problems, ::testing::Each(HasSubstr("rename it")));
  EXPECT_THAT(result.problems, ::testing::UnorderedElementsAre(HasSubstr("printable"),
                                                               HasSubstr("not valid UTF-8")));
}

TEST_F(Scanning, PipesAndOtherThingsAreNoModels) {
  dir_.make_dir("models/folder.gguf");
  ASSERT_EQ(::mkfifo((dir_ / "models/pipe.gguf").c_str(), 0600), 0);
  const ScanResult result = scan(config());
  EXPECT_THAT(names(result), IsEmpty());
}

TEST_F(Scanning, AnAliasThatIsTheNameOfAFoundModelIsDropped) {
  put("models/a.gguf");
  put("models/b.gguf");
  const ScanResult result =
      scan(config("[models]\ndirs = [\"models\"]\n[model.a]\naliases = [\"b\", \"c\"]\n"));
  EXPECT_THAT(model(result, "a").aliases, ElementsAre("c"));
  EXPECT_EQ(model(result, "b").name, "b");
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(result.problems[0], HasSubstr("The alias \"b\" of model \"a\" is not used"));
}

TEST_F(Scanning, ATemplateOfItsOwnMakesAModelChat) {
  put("models/plain.gguf", {.chat_template = std::nullopt});
  dir_.write("t.jinja", "{{ messages }}");
  const std::string section =
      "[models]\ndirs = [\"models\"]\n[model.plain]\nchat_template = \"t.jinja\"\n";
  EXPECT_TRUE(model(scan(config(section)), "plain").can_chat);
  EXPECT_EQ(model(scan(config(section)), "plain").problem, "");
  fs::remove(dir_ / "t.jinja");
  EXPECT_THAT(model(scan(config(section)), "plain").problem,
              AllOf(HasSubstr("t.jinja is not there"), HasSubstr("`chat_template`")));
  dir_.write("t.jinja", "");
  EXPECT_THAT(model(scan(config(section)), "plain").problem, HasSubstr("t.jinja is empty"));
  dir_.write("t.jinja", std::string((std::size_t{256} << 10U) + 1, 'x'));
  EXPECT_THAT(model(scan(config(section)), "plain").problem,
              HasSubstr("t.jinja is longer than 256 KiB"));
}

TEST_F(Scanning, L19_L23_WhatAModelsSettingsNameIsKnownByItsSizeAndTime) {
  put("models/one.gguf");
  const Config settings = config(
      "[models]\ndirs = [\"models\"]\n[model.one]\nchat_template = \"t.jinja\"\n"
      "draft = \"d.gguf\"\nadapters = [\"a.gguf\"]\n");
  std::uint64_t before = model(scan(settings), "one").companions_stamp;
  for (const char* file : {"t.jinja", "d.gguf", "a.gguf"}) {
    for (const char* text : {"broken", "mended by now"}) {
      const ScanResult earlier = scan(settings);
      dir_.write(file, text);
      EXPECT_NE(stat_stamp(settings, earlier.catalog), earlier.stamp) << file;
      const std::uint64_t stamp = model(scan(settings, &earlier.catalog), "one").companions_stamp;
      EXPECT_NE(stamp, before) << file;
      EXPECT_EQ(model(scan(settings), "one").companions_stamp, stamp) << file;
      before = stamp;
    }
  }
}

TEST_F(Scanning, ABuiltinTemplateIsNoFile) {
  put("models/base.gguf");
  const ScanResult result = scan(
      config("[models]\ndirs = [\"models\"]\n[model.base]\nchat_template = \"builtin:chatml\"\n"));
  EXPECT_EQ(model(result, "base").problem, "");
  EXPECT_EQ(model(result, "base").settings.chat_template, "builtin:chatml");
  EXPECT_TRUE(model(result, "base").can_chat);
}

TEST_F(Scanning, AScanStopsAtItsBound) {
  put("models/a/model.gguf");
  for (int i = 0; i < 20; ++i) dir_.write("models/" + std::to_string(i) + ".txt", "");
  const ScanResult result = scan(config(), nullptr, {.directory_entries = 20});
  EXPECT_THAT(names(result), IsEmpty());
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(result.problems[0], HasSubstr("more than 20 entries"));
}

TEST_F(Scanning, HeadersOfUnchangedFilesAreNotReadAgain) {
  put("models/one.gguf", {.name = "before"});
  put("models/two.gguf", {.name = "second"});
  const ScanResult first = scan(config());
  const ScanResult again = scan(config(), &first.catalog);
  EXPECT_EQ(model(again, "one").title, "before");
  EXPECT_EQ(model(again, "one").file_stamp, model(first, "one").file_stamp);
  EXPECT_EQ(again.stamp, first.stamp);

  put("models/one.gguf", {.name = "after", .context = 333});
  const ScanResult changed = scan(config(), &again.catalog);
  EXPECT_EQ(model(changed, "one").title, "after");
  EXPECT_EQ(model(changed, "one").declared_context, 333U);
  EXPECT_EQ(model(changed, "two").title, "second");
}

TEST_F(Scanning, NewSettingsApplyToHeadersThatWereKept) {
  put("models/one.gguf", {.context = 1024});
  const ScanResult first = scan(config());
  const ScanResult again =
      scan(config("[models]\ndirs = [\"models\"]\n[defaults]\ncontext = 512\n"), &first.catalog);
  EXPECT_EQ(model(again, "one").served_context, 512U);
  EXPECT_EQ(model(again, "one").declared_context, 1024U);
}

TEST_F(Scanning, L23_AStatFindsEveryChange) {
  const std::string path = put("models/one.gguf");
  put("models/sub/two.gguf", {.shards = 2});
  dir_.write("t.jinja", "x");
  const Config settings = config(
      "[models]\ndirs = [\"models\"]\n[model.one]\nchat_template = \"t.jinja\"\n"
      "[model.gone]\npath = \"later.gguf\"\n");
  const auto expect_change = [&](const char* what) {
    ScanResult result = scan(settings);
    EXPECT_EQ(stat_stamp(settings, result.catalog), result.stamp) << "before: " << what;
    return result;
  };
  const auto changed = [&](const ScanResult& result) {
    return stat_stamp(settings, result.catalog) != result.stamp;
  };

  ScanResult before = expect_change("a file grows");
  std::ofstream(path, std::ios::app) << "x";
  EXPECT_TRUE(changed(before));

  before = expect_change("a file is replaced by one of the same size and time");
  const auto time = fs::last_write_time(path);
  fs::copy_file(path, dir_ / "copy");
  fs::rename(dir_ / "copy", path);
  fs::last_write_time(path, time);
  EXPECT_TRUE(changed(before));

  before = expect_change("a file comes");
  put("models/sub/three.gguf");
  EXPECT_TRUE(changed(before));

  before = expect_change("a later shard goes");
  fs::remove(dir_ / "models/sub/two-00002-of-00002.gguf");
  EXPECT_TRUE(changed(before));

  before = expect_change("a template changes");
  dir_.write("t.jinja", "other");
  EXPECT_TRUE(changed(before));

  before = expect_change("a configured file appears");
  put("later.gguf");
  EXPECT_TRUE(changed(before));

  before = expect_change("a directory goes");
  fs::rename(dir_ / "models", dir_ / "moved");
  EXPECT_TRUE(changed(before));
}

TEST_F(Scanning, TheDemoModelIsReadAsItIs) {
  dir_.make_dir("models");
  fs::copy_file(std::string(BERTH_SOURCE_DIR) + "/tests/models/tinychat.gguf",
                dir_ / "models/demo.gguf");
  const ScanResult result = scan(config());
  EXPECT_EQ(model(result, "demo").problem, "");
  EXPECT_TRUE(model(result, "demo").can_chat);
  EXPECT_EQ(model(result, "demo").architecture, "llama");
}

}  // namespace
}  // namespace berth::catalog
