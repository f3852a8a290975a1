#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/event.h"
#include "common/keys/key_list.h"
#include "supervisor/catalog/config.h"
#include "supervisor/catalog/directory_watch.h"
#include "supervisor/gateway/auth/key_authenticator.h"
#include "supervisor/gateway/auth/key_gate.h"
#include "supervisor/process/async.h"

namespace berth {

// Keeps the keys that the authenticator knows those of the file: reads it on the pool when it
// changes, every few seconds where that is not reported or it cannot be used, and when told to. A
// file that cannot be used leaves its keys as they were; one that is gone leaves none, nor does a
// setting that names another file. Core strand only; lives as long as the program.
class KeyKeeper {
 public:
  struct Parts {
    Clock& clock;
    EventSink& events;
    process::RunBlocking run_blocking;
    process::OnReadable on_readable;
    gateway::KeyAuthenticator& authenticator;
    gateway::KeyGate& limits;
    // The authenticator may know others now; empty: nobody wants to know.
    std::function<void()> on_changed{};
  };

  explicit KeyKeeper(Parts parts) : parts_(std::move(parts)) {}
  KeyKeeper(const KeyKeeper&) = delete;
  KeyKeeper& operator=(const KeyKeeper&) = delete;

  // Takes these settings, and reads the file again; `done`, which may be empty, when its keys
  // count.
  void use(const catalog::AuthConfig& config, std::function<void()> done = {});

  // What is wrong with the file now.
  [[nodiscard]] std::vector<std::string> problems() const;

 private:
  // What comes back from the pool.
  struct Found {
    std::string file;
    std::vector<keys::Key> keys{};
    std::string problem{};  // it cannot be used
    bool gone = false;      // because there is none
    std::string warning{};  // it can, but should be put right
    std::uint64_t stamp = 0;
    std::optional<catalog::DirectoryWatch> watch{};
  };

  static Found look(const std::string& file);
  void read();
  void take(Found found);
  void report(const Found& found);
  void wait_for_changes();
  void sweep();

  const Parts parts_;
  catalog::AuthConfig config_;
  std::vector<keys::Key> keys_;
  std::string keys_from_;  // the file whose keys these are
  std::string problem_;
  std::string warning_;
  std::uint64_t stamp_ = 0;
  bool reading_ = false;
  bool again_ = false;
  std::vector<std::function<void()>> waiting_;
  std::optional<catalog::DirectoryWatch> watch_;
  Timer readable_;
  Timer sweep_;
};

}  // namespace berth
