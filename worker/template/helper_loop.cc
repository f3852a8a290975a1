#include "worker/template/helper_loop.h"

#include <malloc.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "worker/template/chat_template.h"
#include "worker/template/frames.h"
#include "worker/template/helper_limits.h"

namespace berth::worker {
namespace {

constexpr std::size_t kMostKept = std::size_t{128} << 20U;

bool read_all(int fd, char* bytes, std::size_t size) {
  while (size > 0) {
    const auto got = ::read(fd, bytes, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

// Whether so much of a limit is used that the next call would not have its share.
bool used_up() {
  timespec cpu{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
  if (std::chrono::seconds(cpu.tv_sec) + std::chrono::nanoseconds(cpu.tv_nsec) >=
      HelperLimits::kCpuUsed) {
    return true;
  }
  const auto heap = ::mallinfo2();
  return heap.uordblks + heap.hblkhd > kMostKept;
}

class Helper {
 public:
  TemplateAnswer answer(const TemplateCall& call) {
    return std::visit([this](const auto& one) { return on(one); }, call);
  }
  // A process that ended itself after its setup would do so over and over.
  [[nodiscard]] bool has_rendered() const { return has_rendered_; }

 private:
  TemplateAnswer on(const TemplateSetup& setup) {
    control_ = ControlTexts(setup.control_texts);
    if (setup.source.empty()) return SetupDone{};  // only to flatten
    auto parsed = ChatTemplate::parse(setup.source, setup.bos, setup.eos);
    if (!parsed) return parsed.error();
    template_.emplace(std::move(*parsed));
    return SetupDone{};
  }
  TemplateAnswer on(const RenderCall& call) {
    has_rendered_ = true;
    if (!template_) return Error(Reason::kInternal, "There is no template.");
    auto prompt = template_->render(call.request, control_, std::time(nullptr));
    if (!prompt) return prompt.error();
    return std::move(*prompt);
  }
  TemplateAnswer on(const FlattenCall& call) {
    has_rendered_ = true;
    auto flat = flatten(call.request, control_);
    if (!flat) return flat.error();
    return std::move(*flat);
  }

  bool has_rendered_ = false;
  ControlTexts control_{{}};
  std::optional<ChatTemplate> template_;
};

}  // namespace

int serve_calls(int fd) {
  Helper helper;
  std::string header(FrameBounds::kHeader, '\0');
  while (read_all(fd, header.data(), header.size())) {
    const auto size = frame_size(header);
    if (size > FrameBounds::kRequest) return HelperExit::kProtocol;
    {
      std::string body(size, '\0');
      if (!read_all(fd, body.data(), size)) return 0;
      const auto call = decode_call(body);
      if (!call) return HelperExit::kProtocol;
      if (!write_all(fd, encode_answer(helper.answer(*call)))) return 0;
    }
    if (helper.has_rendered() && used_up()) return 0;
  }
  return 0;
}

}  // namespace berth::worker
