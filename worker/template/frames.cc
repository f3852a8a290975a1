#include "worker/template/frames.h"

#include <utility>

#include "common/text.h"

namespace berth::worker {
namespace {

constexpr std::size_t kErrorBytes = 1000;  // of each text of an error

enum class Kind : std::uint8_t {
  kSetup = 1,
  kRender,
  kFlatten,
  kSetupDone,
  kPrompt,
  kFlat,
  kError,
};

class FrameWriter {
 public:
  explicit FrameWriter(Kind kind) : frame_(FrameBounds::kHeader, '\0') {
    byte(static_cast<std::uint8_t>(kind));
  }

  void byte(std::uint8_t value) { frame_.push_back(static_cast<char>(value)); }
  void number(std::size_t value) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
      frame_.push_back(static_cast<char>((value >> shift) & 0xFFU));
    }
  }
  void text(std::string_view value) {
    number(value.size());
    frame_.append(value);
  }
  std::string take() {
    const auto size = frame_.size() - FrameBounds::kHeader;
    for (unsigned i = 0; i < FrameBounds::kHeader; ++i) {
      frame_[i] = static_cast<char>((size >> (8 * i)) & 0xFFU);
    }
    return std::move(frame_);
  }

 private:
  std::string frame_;
};

// Reads what a FrameWriter wrote. After a field that is not there, all is empty and failed() true.
class FrameReader {
 public:
  explicit FrameReader(std::string_view body) : rest_(body) {}

  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool done() const { return !failed_ && rest_.empty(); }

  std::uint8_t byte() {
    if (!has(1)) return 0;
    const auto value = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  std::uint32_t number() {
    if (!has(4)) return 0;
    const auto value = static_cast<std::uint32_t>(frame_size(rest_));
    rest_.remove_prefix(4);
    return value;
  }
  std::string_view text() {
    const auto size = number();
    if (!has(size)) return {};
    const auto value = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return value;
  }
  // What was read makes no sense.
  void refuse() { failed_ = true; }
  // The length of a list, checked.
  std::uint32_t count() {
    const auto value = number();
    if (value > FrameBounds::kItems) failed_ = true;
    return failed_ ? 0 : value;
  }

 private:
  bool has(std::size_t bytes) {
    if (rest_.size() < bytes) failed_ = true;
    return !failed_;
  }

  std::string_view rest_;
  bool failed_ = false;
};

tl::unexpected<Error> malformed() {
  return fail(Reason::kInternal, "A message between the worker and berth-template is malformed.");
}

RenderedPrompt read_prompt(FrameReader& reader) {
  RenderedPrompt prompt;
  prompt.tools_described = reader.byte() != 0;
  for (auto left = reader.count(); left > 0 && !reader.failed(); --left) {
    const bool literal = reader.byte() != 0;
    prompt.parts.push_back({std::string(reader.text()), literal});
  }
  return prompt;
}

FlatConversation read_flat(FrameReader& reader) {
  FlatConversation flat;
  flat.marks.begin = reader.text();
  flat.marks.end = reader.text();
  if (!flat.marks.well_formed()) reader.refuse();
  for (auto left = reader.count(); left > 0 && !reader.failed(); --left) {
    auto role = std::string(reader.text());
    flat.messages.push_back({std::move(role), std::string(reader.text())});
  }
  return flat;
}

Error read_error(FrameReader& reader) {
  const auto reason = reason_from_name(reader.text());
  auto message = printable_line(reader.text(), kErrorBytes);
  ErrorExtras extras;
  extras.param = printable_line(reader.text(), kErrorBytes);
  const bool is_own = reason == Reason::kInvalidArgument || reason == Reason::kInternal;
  return {is_own ? *reason : Reason::kTemplateFailed, std::move(message), std::move(extras)};
}

std::string encode(const SetupDone& /*answer*/) {
  return FrameWriter(Kind::kSetupDone).take();
}

std::string encode(const RenderedPrompt& prompt) {
  FrameWriter writer(Kind::kPrompt);
  writer.byte(prompt.tools_described ? 1 : 0);
  writer.number(prompt.parts.size());
  for (const auto& part : prompt.parts) {
    writer.byte(part.literal ? 1 : 0);
    writer.text(part.text);
  }
  return writer.take();
}

std::string encode(const FlatConversation& flat) {
  FrameWriter writer(Kind::kFlat);
  writer.text(flat.marks.begin);
  writer.text(flat.marks.end);
  writer.number(flat.messages.size());
  for (const auto& message : flat.messages) {
    writer.text(message.role);
    writer.text(message.content);
  }
  return writer.take();
}

std::string encode(const Error& error) {
  FrameWriter writer(Kind::kError);
  writer.text(reason_info(error.reason).name);
  writer.text(error.message);
  writer.text(error.extras ? error.extras->param : "");
  return writer.take();
}

}  // namespace

std::size_t frame_size(std::string_view header) {
  std::size_t size = 0;
  for (unsigned i = 0; i < FrameBounds::kHeader; ++i) {
    size |= static_cast<std::size_t>(static_cast<unsigned char>(header[i])) << (8 * i);
  }
  return size;
}

std::string encode_setup(const TemplateSetup& setup) {
  FrameWriter writer(Kind::kSetup);
  writer.text(setup.source);
  writer.text(setup.bos);
  writer.text(setup.eos);
  writer.number(setup.control_texts.size());
  for (const auto& text : setup.control_texts) writer.text(text);
  return writer.take();
}

std::string encode_request(const ChatRequest& request, bool flatten) {
  FrameWriter writer(flatten ? Kind::kFlatten : Kind::kRender);
  writer.text(request.messages_json);
  writer.text(request.tools_json);
  writer.text(request.variables_json);
  writer.byte(request.add_generation_prompt ? 1 : 0);
  return writer.take();
}

Result<TemplateCall> decode_call(std::string_view body) {
  FrameReader reader(body);
  const auto kind = static_cast<Kind>(reader.byte());
  if (kind == Kind::kSetup) {
    TemplateSetup setup;
    setup.source = reader.text();
    setup.bos = reader.text();
    setup.eos = reader.text();
    for (auto left = reader.count(); left > 0 && !reader.failed(); --left) {
      setup.control_texts.emplace_back(reader.text());
    }
    if (!reader.done()) return malformed();
    return setup;
  }
  ChatRequest request;
  request.messages_json = reader.text();
  request.tools_json = reader.text();
  request.variables_json = reader.text();
  request.add_generation_prompt = reader.byte() != 0;
  if (!reader.done()) return malformed();
  if (kind == Kind::kRender) return RenderCall{request};
  if (kind == Kind::kFlatten) return FlattenCall{request};
  return malformed();
}

std::string encode_answer(const TemplateAnswer& answer) {
  return std::visit([](const auto& one) { return encode(one); }, answer);
}

Result<TemplateAnswer> decode_answer(std::string_view body) {
  FrameReader reader(body);
  TemplateAnswer answer;
  switch (static_cast<Kind>(reader.byte())) {
    case Kind::kSetupDone:
      break;
    case Kind::kPrompt:
      answer = read_prompt(reader);
      break;
    case Kind::kFlat:
      answer = read_flat(reader);
      break;
    case Kind::kError:
      answer = read_error(reader);
      break;
    case Kind::kSetup:
    case Kind::kRender:
    case Kind::kFlatten:
    default:
      return malformed();
  }
  if (!reader.done()) return malformed();
  return answer;
}

}  // namespace berth::worker
