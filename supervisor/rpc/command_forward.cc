#include "supervisor/rpc/command_forward.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/text.h"

namespace berth::rpc {
namespace {

constexpr std::size_t kLongestHeader = 256;

// A header that may be sent on; empty where it may not.
std::string sendable(std::string value) {
  const bool printable =
      std::all_of(value.begin(), value.end(), [](char byte) { return byte >= ' ' && byte <= '~'; });
  return printable && value.size() <= kLongestHeader ? std::move(value) : std::string();
}

class ForwardReader : public CommandReader {
 public:
  ForwardReader(ForwardRequest request, std::shared_ptr<ForwardSink> sink)
      : request_(std::move(request)), sink_(std::move(sink)) {}

  CommandPost request(const std::string& model) override {
    CommandPost post;
    post.path = std::move(request_.path);
    for (std::string& part : request_.body) {
      if (!post.body.empty()) post.body.push_back(model);
      post.body.push_back(std::move(part));
    }
    request_.body.clear();
    return post;
  }

  Status on_head(CommandHead head) override {
    // It was asked for none.
    if (!head.content_encoding.empty() && head.content_encoding != "identity") {
      return fail(Reason::kInternal,
                  "The program of the model answered in an encoding that it was not asked for (" +
                      printable_line(head.content_encoding, 32) + ").");
    }
    sink_->on_head({head.status, sendable(std::move(head.content_type)),
                    sendable(std::move(head.retry_after))});
    return {};
  }
  Result<bool> on_piece(std::string piece) override { return sink_->on_piece(std::move(piece)); }
  [[nodiscard]] bool complete() const override { return sink_->complete(); }
  void on_end(Status status) override { sink_->on_end(std::move(status)); }

 private:
  ForwardRequest request_;
  const std::shared_ptr<ForwardSink> sink_;
};

}  // namespace

std::unique_ptr<CommandReader> forward_reader(ForwardRequest request,
                                              std::shared_ptr<ForwardSink> sink) {
  return std::make_unique<ForwardReader>(std::move(request), std::move(sink));
}

}  // namespace berth::rpc
