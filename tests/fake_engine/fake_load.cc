#include "tests/fake_engine/fake_load.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include "common/fd.h"
#include "common/result.h"
#include "tests/fake_engine/fake_engine.h"

namespace berth::worker {
namespace {

constexpr std::size_t kMostRead = std::size_t{2} << 20U;
constexpr auto kPiece = std::chrono::milliseconds(1);
constexpr int kExitStatus = 3;
constexpr std::array<std::string_view, 3> kPhases = {"starting", "weights", "context"};

// As fast as a small model, so that a generation can be met in its middle.
FakeSettings quick_model() {
  FakeSettings settings;
  settings.window = 4096;
  settings.generation_speed = 2000;
  settings.endless = true;
  settings.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}";
  return settings;
}

std::string read_start(int fd) {
  std::string text(kMostRead, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const auto count = ::read(fd, text.data() + size, text.size() - size);
    if (count <= 0) break;
    size += static_cast<std::size_t>(count);
  }
  text.resize(size);
  return text;
}

tl::expected<FakeSettings, LoadFailure> settings_of(const EngineSettings& settings) {
  const UniqueFd file(::open(settings.model_path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return tl::unexpected(LoadFailure{"unclassified", "No such file"});
  struct stat status {};
  std::string content;
  if (::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode)) {
    content = read_start(file.get());
  }
  const auto text = find_fake_settings(content);
  auto made = text ? FakeSettings{} : quick_model();
  if (text) {
    made.window = quick_model().window;
    if (auto read = read_fake_settings(*text, made); !read) {
      return tl::unexpected(
          LoadFailure{"permanent", "fake model settings: " + read.error().message});
    }
  }
  made.sequences = settings.sequences;
  made.batch = settings.batch;
  if (settings.context != 0) {
    made.window = settings.context;
    made.cells = std::max(made.cells, made.window);
  }
  if (settings.threads != 0) made.threads = settings.threads;
  if (settings.purpose == Purpose::kEmbed) made.purpose = Purpose::kEmbed;
  return made;
}

// Whether the load goes on.
bool fail_load(const FakeSettings& settings, const LoadObserver& observer) {
  switch (settings.load_failure) {
    case FakeFailure::kError:
      return false;
    case FakeFailure::kHang:
      while (!observer.cancelled()) std::this_thread::sleep_for(kPiece);
      return false;
    case FakeFailure::kStuck:
      while (true) std::this_thread::sleep_for(kPiece);
    case FakeFailure::kCrash:
      std::abort();
    case FakeFailure::kExit:
      ::_exit(kExitStatus);
  }
  return true;
}

}  // namespace

tl::expected<std::unique_ptr<Engine>, LoadFailure> load_fake_engine(const EngineSettings& settings,
                                                                    LoadObserver& observer) {
  observer.on_progress(LoadProgress{"starting"});
  auto made = settings_of(settings);
  if (!made) return tl::unexpected(made.error());
  const auto fake = *made;
  const auto cancelled = [] { return tl::unexpected(LoadFailure{"", "cancelled", true}); };
  auto owned = std::make_unique<FakeEngine>(std::move(*made));
  auto* const engine = owned.get();
  for (const auto phase : kPhases) {
    if (phase == "context") {
      observer.on_vocabulary(*engine);
      // Another thread may read it from now on: it is given up only with the process.
      static_cast<void>(owned.release());
    }
    if (fake.load_failure_phase == phase && !fail_load(fake, observer)) {
      if (observer.cancelled()) return cancelled();
      return tl::unexpected(LoadFailure{fake.load_failure_class, fake.load_failure_reason});
    }
    const auto time = fake.load / static_cast<int>(kPhases.size());
    Duration spent{};
    do {
      const auto fraction = time > Duration{}
                                ? static_cast<float>(static_cast<double>(spent.count()) /
                                                     static_cast<double>(time.count()))
                                : 1.0F;
      const bool weights = phase == "weights";
      const auto total = weights ? fake.weights_bytes : 0;
      observer.on_progress(LoadProgress{
          phase, fraction,
          static_cast<std::uint64_t>(static_cast<double>(total) * static_cast<double>(fraction)),
          total});
      if (observer.cancelled()) return cancelled();
      if (time > Duration{}) std::this_thread::sleep_for(kPiece);
      spent += kPiece;
    } while (spent < time);
  }
  return std::unique_ptr<Engine>(engine);
}

}  // namespace berth::worker
