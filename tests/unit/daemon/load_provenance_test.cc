#include "supervisor/load_provenance.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

namespace berth {
namespace {

catalog::Model some_model() {
  catalog::Model model;
  model.name = "m";
  model.path = "/models/m-00001-of-00002.gguf";
  model.shards = {"/models/m-00001-of-00002.gguf", "/models/m-00002-of-00002.gguf"};
  model.file_bytes = 1000;
  model.modified = WallTime(std::chrono::milliseconds(5));
  model.header_hash = 7;
  model.served_context = 4096;
  return model;
}

TEST(LoadProvenance, L19_IsTheSameForTheSameModel) {
  const core::Provenance one = load_provenance(some_model(), {"CUDA_X=1", "HOME=/root"});
  EXPECT_EQ(one, load_provenance(some_model(), {"CUDA_X=1", "HOME=/home/eve"}));
  EXPECT_EQ(one.files->size(), 2U);
  EXPECT_EQ(one.files->front().modified_ns, 5'000'000);
}

TEST(LoadProvenance, L19_EverySettingThatALoadDependsOnMovesAField) {
  using Field = core::ProvenanceField;
  const std::vector<std::pair<Field, std::function<void(catalog::Model&)>>> cases = {
      {Field::kFiles, [](catalog::Model& m) { m.file_bytes = 1001; }},
      {Field::kFiles, [](catalog::Model& m) { m.modified += std::chrono::milliseconds(1); }},
      {Field::kFiles, [](catalog::Model& m) { m.header_hash = 8; }},
      {Field::kFiles, [](catalog::Model& m) { m.shards.pop_back(); }},
      {Field::kWindow, [](catalog::Model& m) { m.served_context = 8192; }},
      {Field::kSequences, [](catalog::Model& m) { m.settings.sequences = 2; }},
      {Field::kKvTypes, [](catalog::Model& m) { m.settings.kv_type = "q8_0"; }},
      {Field::kDevices, [](catalog::Model& m) { m.settings.devices = {"CUDA0"}; }},
      {Field::kLaunch, [](catalog::Model& m) { m.settings.batch = 99; }},
      {Field::kLaunch, [](catalog::Model& m) { m.settings.chat_template = "/t.jinja"; }},
      {Field::kLaunch, [](catalog::Model& m) { m.companions_stamp = 1; }},
      {Field::kLaunch, [](catalog::Model& m) { m.settings.draft = "/d.gguf"; }},
  };
  const core::Provenance before = load_provenance(some_model(), {});
  for (const auto& [field, change] : cases) {
    catalog::Model model = some_model();
    change(model);
    const auto moved = core::moved_field(before, load_provenance(model, {}));
    ASSERT_TRUE(moved) << core::provenance_field_name(field);
    EXPECT_EQ(moved->field, field) << to_string(*moved);
  }
  const auto moved = core::moved_field(before, load_provenance(some_model(), {"CUDA_X=1"}));
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->field, Field::kLaunch);
}

TEST(LoadProvenance, L19_L23_EverySettingThatDecidesALoadMovesItsLaunch) {
  using Change = std::function<void(catalog::ModelSettings&)>;
  const std::vector<Change> both = {
      [](catalog::ModelSettings& s) { s.load_timeout = std::chrono::minutes(5); },
      [](catalog::ModelSettings& s) { s.load_stall = std::chrono::minutes(5); },
      [](catalog::ModelSettings& s) { s.fatal_exceptions = {"MyError"}; },
  };
  const std::vector<Change> of_commands = {
      [](catalog::ModelSettings& s) { s.directory = "/srv/other"; },
      [](catalog::ModelSettings& s) { s.probe = "path:/health"; },
      [](catalog::ModelSettings& s) { s.environment["A"] = "b"; },
  };
  const auto moved_by = [](catalog::Kind kind, const Change& change) {
    catalog::Model model = some_model();
    model.settings.kind = kind;
    model.settings.command = {"serve", "{port}"};
    const core::Provenance before = load_provenance(model, {});
    change(model.settings);
    const auto moved = core::moved_field(before, load_provenance(model, {}));
    return moved && moved->field == core::ProvenanceField::kLaunch;
  };
  for (std::size_t i = 0; i < both.size(); ++i) {
    EXPECT_TRUE(moved_by(catalog::Kind::kLlama, both[i])) << i;
    EXPECT_TRUE(moved_by(catalog::Kind::kCommand, both[i])) << i;
  }
  for (std::size_t i = 0; i < of_commands.size(); ++i) {
    EXPECT_TRUE(moved_by(catalog::Kind::kCommand, of_commands[i])) << i;
  }
  EXPECT_FALSE(moved_by(catalog::Kind::kCommand,
                        [](catalog::ModelSettings& s) { s.ttl = std::chrono::minutes(5); }));
}

TEST(LoadProvenance, L19_ANewLoginIsNoOtherLaunchOfACommand) {
  catalog::Model model = some_model();
  model.settings.kind = catalog::Kind::kCommand;
  model.settings.command = {"serve", "--port", "{port}"};
  const core::Provenance before = load_provenance(
      model, {"LANG=C", "XDG_SESSION_ID=1", "INVOCATION_ID=a", "JOURNAL_STREAM=8:1"});
  EXPECT_EQ(before, load_provenance(model, {"JOURNAL_STREAM=8:2", "XDG_SESSION_ID=2", "LANG=C",
                                            "XDG_RUNTIME_DIR=/run/user/1000"}));
  EXPECT_NE(before, load_provenance(model, {"LANG=de_DE.UTF-8"}));
}

TEST(LoadProvenance, L19_ACommandCountsWithItsPlaceholdersLeftOpen) {
  catalog::Model model = some_model();
  model.settings.kind = catalog::Kind::kCommand;
  model.settings.command = {"serve", "--port", "{port}"};
  const core::Provenance before = load_provenance(model, {});
  EXPECT_EQ(before, load_provenance(model, {}));
  model.settings.command.emplace_back("--eager");
  const auto moved = core::moved_field(before, load_provenance(model, {}));
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->field, core::ProvenanceField::kLaunch);
}

}  // namespace
}  // namespace berth
