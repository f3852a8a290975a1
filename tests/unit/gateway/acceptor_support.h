#pragma once

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "common/fd.h"

// What tests of the doors of gRPC connect with.
namespace berth::testing {

inline constexpr auto kGenerous = std::chrono::seconds(60);

// One of its own, with a short path.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "bgrpc.XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Invalid where nobody listens.
inline UniqueFd connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(&address.sun_path[0], path.c_str(), path.size());
  UniqueFd connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return {};
  return connection;
}

// Connections that were accepted, and are kept open.
class Taken {
 public:
  void add(UniqueFd connection) {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(connection));
    ++count_;
    count_.notify_all();
  }
  void close_first() {
    const std::lock_guard lock(mutex_);
    all_.erase(all_.begin());
  }
  void close_all() {
    const std::lock_guard lock(mutex_);
    all_.clear();
  }
  // Of all that ever were.
  [[nodiscard]] const std::atomic<int>& count() const { return count_; }

 private:
  std::mutex mutex_;
  std::vector<UniqueFd> all_;
  std::atomic<int> count_{0};
};

}  // namespace berth::testing
