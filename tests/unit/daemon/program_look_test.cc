#include "supervisor/program_look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/process/temp_dir.h"

namespace berth {
namespace {

using ::testing::ElementsAre;
using testing::TempDir;

catalog::ModelSettings command(std::vector<std::string> argv) {
  catalog::ModelSettings settings;
  settings.kind = catalog::Kind::kCommand;
  settings.command = std::move(argv);
  return settings;
}

std::vector<core::ProgramFile> look(const catalog::ModelSettings& settings) {
  return look_at_program(settings, {"PATH=/usr/bin:/bin"}).files;
}

std::vector<std::string> paths_seen(const catalog::ModelSettings& settings) {
  std::vector<std::string> paths;
  for (const core::ProgramFile& file : look(settings)) paths.push_back(file.path);
  return paths;
}

TEST(ProgramLook, L19_TheProgramAndTheFilesOfItsArgumentsAreLookedAt) {
  const TempDir dir;
  for (const std::string name : {"server.py", "model.gguf"}) std::ofstream(dir.file(name)) << "x";
  auto settings = command({"sh", "server.py", "--model=" + dir.file("model.gguf"), "--host", "::1",
                           "{port}", "missing.py", "/", ""});
  settings.directory = dir.path();
  EXPECT_THAT(paths_seen(settings),
              ElementsAre("/usr/bin/sh", dir.file("server.py"), dir.file("model.gguf")));
  const auto before = look(settings);
  EXPECT_EQ(before.at(1).size, 1U);
  EXPECT_NE(before.at(1).inode, 0U);
  EXPECT_EQ(look(settings), before);
  std::ofstream(dir.file("missing.py")) << "x";
  EXPECT_NE(look(settings), before) << "one that comes is a change, too";
}

TEST(ProgramLook, L19_AProgramThatIsMendedIsAnotherOne) {
  const TempDir dir;
  const std::string program = dir.file("serve");
  const auto settings = command({program, "{port}"});
  const auto missing = look(settings);
  EXPECT_EQ(missing, (std::vector<core::ProgramFile>{{program, 0, 0, 0}}));
  std::ofstream(program) << "#!/bin/sh\n";
  EXPECT_EQ(look(settings), missing) << "it cannot be executed yet";
  ASSERT_EQ(::chmod(program.c_str(), 0700), 0);
  const auto mended = look(settings);
  EXPECT_NE(mended, missing);
  ASSERT_EQ(::rename(program.c_str(), dir.file("old").c_str()), 0);
  std::ofstream(program) << "#!/bin/sh\n";
  ASSERT_EQ(::chmod(program.c_str(), 0700), 0);
  EXPECT_NE(look(settings), mended) << "another file of the same size";
}

TEST(ProgramLook, L19_AWorkingDirectoryThatComesIsAChange) {
  const TempDir dir;
  auto settings = command({"sh", "{port}"});
  settings.directory = dir.file("work");
  const auto before = look(settings);
  ASSERT_EQ(::mkdir(settings.directory.c_str(), 0700), 0);
  EXPECT_NE(look(settings), before);
}

TEST(ProgramLook, L23_WhatIsNotThereYetIsWatchedWhereItMayCome) {
  const auto watched = look_at_program(command({"no-such-runtime", "/srv/x.py", "word"}),
                                       {"PATH=/usr/local/bin:relative:/bin"})
                           .watched;
  EXPECT_THAT(watched,
              ElementsAre("/usr/local/bin/no-such-runtime", "/bin/no-such-runtime", "/srv/x.py"));
}

}  // namespace
}  // namespace berth
