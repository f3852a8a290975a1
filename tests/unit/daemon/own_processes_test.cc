#include "supervisor/own_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace berth {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

// berthd (1), its worker (10) with a process below (11), and a shim (20) with its program (21).
class OwnProcessesTest : public testing::Test {
 protected:
  struct Process {
    std::uint64_t started = 0;
    std::vector<pid_t> children{};
    std::uint64_t bytes = 1;
  };

  [[nodiscard]] const Process* find(pid_t pid) const {
    const auto at = processes_.find(pid);
    return at == processes_.end() ? nullptr : &at->second;
  }

  std::map<pid_t, Process> processes_ = {
      {1, {100, {10, 20}}}, {10, {110, {11}}}, {11, {111}}, {20, {120, {21}}}, {21, {121}}};
  std::map<pid_t, int> asked_;
  OwnProcesses own_{1,
                    {.children =
                         [this](pid_t pid) {
                           ++asked_[pid];
                           const Process* const one = find(pid);
                           return one == nullptr ? std::vector<pid_t>() : one->children;
                         },
                     .started = [this](pid_t pid) -> std::optional<std::uint64_t> {
                       if (const Process* const one = find(pid)) return one->started;
                       return std::nullopt;
                     },
                     .memory = [this](pid_t pid) -> std::optional<std::uint64_t> {
                       if (const Process* const one = find(pid)) return one->bytes;
                       return std::nullopt;
                     }}};
};

TEST_F(OwnProcessesTest, M3_AllThatDescendAreOursAndSeldomAsked) {
  const auto all = UnorderedElementsAre(
      memory::OwnProcess{1, 1, 1}, memory::OwnProcess{10, 10, 1}, memory::OwnProcess{11, 10, 1},
      memory::OwnProcess{20, 20, 1}, memory::OwnProcess{21, 20, 1});
  for (int look = 0; look < OwnProcesses::kDeepLook; ++look) EXPECT_THAT(own_.read(), all);
  EXPECT_EQ(asked_[10], 1);
  EXPECT_EQ(asked_[1], OwnProcesses::kDeepLook);
  EXPECT_THAT(own_.read(), all);
  EXPECT_EQ(asked_[10], 2);
}

TEST_F(OwnProcessesTest, M3_AnOrphanBelongsToTheChildThatItCameFrom) {
  (void)own_.read();
  processes_.erase(20);
  processes_[1].children = {10, 21};
  EXPECT_THAT(own_.read(), testing::Contains(memory::OwnProcess{21, 20, 1}));
}

TEST_F(OwnProcessesTest, M3_ANumberThatIsUsedAgainIsNotTheProcessThatHadIt) {
  (void)own_.read();
  processes_[11] = {500, {}, 64};  // somebody else's; the worker has not been asked since
  EXPECT_THAT(own_.read(),
              UnorderedElementsAre(memory::OwnProcess{1, 1, 1}, memory::OwnProcess{10, 10, 1},
                                   memory::OwnProcess{20, 20, 1}, memory::OwnProcess{21, 20, 1}));
  // A new child of berthd with the number of one that was below another child.
  processes_[21] = {600};
  processes_[20].children = {};
  processes_[1].children = {10, 20, 21};
  EXPECT_THAT(own_.read(), testing::Contains(memory::OwnProcess{21, 21, 1}));
}

TEST_F(OwnProcessesTest, M3_OneThatHasANumberAgainIsAskedForItsChildren) {
  (void)own_.read();
  processes_[10] = {700, {12}};
  processes_[12] = {701};
  processes_.erase(11);
  EXPECT_THAT(own_.read(), testing::Contains(memory::OwnProcess{12, 10, 1}));
}

}  // namespace
}  // namespace berth
