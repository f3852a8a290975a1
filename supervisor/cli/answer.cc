#include "supervisor/cli/answer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include "common/proto_json/proto_json.h"
#include "common/text.h"
#include "common/units.h"

namespace berth::cli {
namespace {

constexpr std::size_t kMostInputBytes = std::size_t{64} << 20U;
constexpr std::size_t kMostAnswerBytes = std::size_t{64} << 20U;

CallError own_error(std::string reason, std::string message) {
  CallError error;
  error.kind = CallError::Kind::kRefused;
  error.detail.set_reason(std::move(reason));
  error.detail.set_message(std::move(message));
  return error;
}

// Shows the events of one generation.
class AnswerView {
 public:
  AnswerView(Context& context, const v1::GenerateRequest& request, bool verbose)
      : context_(context),
        model_(printable_line(request.model(), 64)),
        progress_(context.environment(), verbose) {}

  // Returns whether to go on.
  bool on_event(const v1::GenerateEvent& event) {
    if (context_.json()) {
      progress_.clear();
      context_.print_json(event, JsonWriter::Layout::kLine);
    }
    switch (event.event_case()) {
      case v1::GenerateEvent::kQueued:
        progress_.show(
            {model_ + ": " + describe_queued(event.queued()), {}, eta_of(event.queued())});
        break;
      case v1::GenerateEvent::kLoading:
        progress_.show(describe_loading(model_, event.loading()));
        break;
      case v1::GenerateEvent::kPrefill:
        on_prefill(event.prefill());
        break;
      case v1::GenerateEvent::kToken:
        on_text(event.token().text());
        break;
      case v1::GenerateEvent::kDone:
        answer_.done = event.done();
        break;
      case v1::GenerateEvent::kError:
        if (!context_.json()) {
          // Told by the caller; the event itself shows nothing.
          progress_.clear();
        }
        break;
      case v1::GenerateEvent::kAccepted:
      case v1::GenerateEvent::kRestored:
      case v1::GenerateEvent::EVENT_NOT_SET:
        break;
    }
    if (const auto problem = context_.environment().out.failed()) {
      failure_ = own_error("internal", "cannot write the answer: " + *problem);
      return false;
    }
    if (answer_.text.size() > kMostAnswerBytes) {
      failure_ = own_error(
          "internal", "the answer is longer than " + format_bytes(kMostAnswerBytes) + ": stopped");
      return false;
    }
    return true;
  }

  Answer finish(Reply<void> reply, Caught caught) {
    progress_.clear();
    if (!context_.json() && !answer_.text.empty() && answer_.text.back() != '\n') {
      context_.environment().out.write("\n");
    }
    answer_.caught = caught;
    if (failure_) {
      answer_.error = failure_;
    } else if (!reply) {
      if (reply.error().kind != CallError::Kind::kStopped) answer_.error = reply.error();
    } else if (!answer_.done) {
      answer_.error = own_error("internal", "the daemon ended the stream without an answer");
    }
    // Whatever broke while the work was being stopped is no news. An answer that was complete
    // before the Ctrl-C is complete.
    if (caught != Caught::kNone) answer_.error.reset();
    if (answer_.done && caught == Caught::kInterrupt) answer_.caught = Caught::kNone;
    return std::move(answer_);
  }

 private:
  static std::optional<std::chrono::milliseconds> eta_of(const v1::Queued& queued) {
    if (!queued.has_eta_ms()) return std::nullopt;
    return std::chrono::milliseconds(queued.eta_ms());
  }

  void on_prefill(const v1::Prefill& prefill) {
    ProgressState state{model_ + ": reading the prompt", {}, {}};
    if (prefill.total() > 0) {
      state.fraction = static_cast<double>(prefill.done()) / prefill.total();
    }
    progress_.show(std::move(state));
  }

  void on_text(const std::string& text) {
    progress_.clear();
    answer_.text += text;
    if (!context_.json()) context_.print(text);
  }

  Context& context_;
  std::string model_;
  Progress progress_;
  Answer answer_;
  std::optional<CallError> failure_;
};

}  // namespace

std::string describe_queued(const v1::Queued& queued) {
  if (queued.position() <= 1) return "waiting, next in line";
  return "waiting, " + std::to_string(queued.position() - 1) + " ahead";
}

ProgressState describe_loading(std::string_view model, const v1::Loading& loading) {
  ProgressState state;
  state.what = std::string(model) + ": loading";
  if (!loading.phase().empty()) state.what += " (" + printable_line(loading.phase(), 32) + ")";
  state.fraction = loading.fraction();
  if (loading.has_eta_ms()) state.eta = std::chrono::milliseconds(loading.eta_ms());
  return state;
}

Answer ask(Context& context, const v1::GenerateRequest& request, bool verbose) {
  auto client = context.client();
  if (!client) {
    Answer answer;
    answer.error = client.error();
    return answer;
  }
  AnswerView view(context, request, verbose);
  Reply<void> reply;
  const Caught caught = context.environment().interrupts.during([&](const std::stop_token& stop) {
    reply = (*client)->generate(
        request, [&](const v1::GenerateEvent& event) { return view.on_event(event); }, stop);
  });
  if (!reply && reply.error().kind == CallError::Kind::kUnreachable) context.forget_client();
  return view.finish(std::move(reply), caught);
}

Answer ask_alone(Context& context, const v1::GenerateRequest& request, bool verbose) {
  if (auto client = context.client(); !client) {
    Answer answer;
    answer.error = client.error();
    return answer;
  }
  context.environment().interrupts.take_over(Interrupts::Again::kEndsProgram);
  return ask(context, request, verbose);
}

ExitCode end_of(Context& context, const v1::GenerateRequest& request, const Answer& answer,
                bool verbose) {
  if (answer.error) return context.fail(*answer.error, request.model());
  if (answer.caught != Caught::kNone) return ExitCode::kInterrupted;
  Output& err = context.environment().err;
  if (answer.done && answer.done->finish_reason() == "length" && !request.has_max_tokens()) {
    err.write("berth: the answer was cut: the context is full\n");
  }
  if (answer.done && verbose) err.write(describe_usage(*answer.done) + "\n");
  return ExitCode::kOk;
}

void set_sampling(v1::GenerateRequest& request, const SamplingOptions& sampling) {
  auto& to = *request.mutable_sampling();
  if (sampling.temperature) to.set_temperature(*sampling.temperature);
  if (sampling.top_k) to.set_top_k(*sampling.top_k);
  if (sampling.top_p) to.set_top_p(*sampling.top_p);
  if (sampling.seed) to.set_seed(*sampling.seed);
  if (sampling.max_tokens) request.set_max_tokens(*sampling.max_tokens);
  for (const std::string& stop : sampling.stop) request.add_stop(stop);
}

Result<std::string> prompt_text(const Environment& environment,
                                const std::vector<std::string>& words) {
  std::string text;
  bool read = false;
  for (const std::string& word : words) {
    const bool is_input = word == "-";
    if (!text.empty()) text.push_back(is_input ? '\n' : ' ');
    if (!is_input) {
      text += word;
      continue;
    }
    if (read) {
      return fail(Reason::kInvalidArgument, "the standard input can be used once only: '-'");
    }
    read = true;
    ReadAll input = read_all(environment.input, kMostInputBytes);
    if (!input.error.empty()) {
      return fail(Reason::kInvalidArgument, "cannot read the standard input: " + input.error);
    }
    text += input.text;
  }
  if (text.empty()) return fail(Reason::kInvalidArgument, "the prompt is empty");
  if (const auto at = first_invalid_utf8(text)) {
    std::array<char, 8> hex{};
    std::snprintf(hex.data(), hex.size(), "0x%02x", static_cast<unsigned char>(text[*at]));
    return fail(Reason::kInvalidArgument, "the prompt is not UTF-8: byte " + std::to_string(*at) +
                                              " is " + hex.data() +
                                              "; convert it first, e.g. with iconv");
  }
  return text;
}

std::string describe_usage(const v1::Done& done) {
  const auto milliseconds = [](std::uint64_t us) {
    return format_duration_human(
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::microseconds(us)));
  };
  const v1::Usage& usage = done.usage();
  const v1::Timings& timings = done.timings();
  std::string out = std::to_string(usage.prompt_tokens()) + " tokens read";
  if (usage.cached_tokens() > 0) {
    out += " (" + std::to_string(usage.cached_tokens()) + " of them known)";
  }
  out += ", " + std::to_string(usage.completion_tokens()) + " written";
  if (timings.decode_us() > 0 && usage.completion_tokens() > 0) {
    std::array<char, 32> rate{};
    std::snprintf(rate.data(), rate.size(), "%.1f",
                  usage.completion_tokens() * 1e6 / static_cast<double>(timings.decode_us()));
    out += " at " + std::string(rate.data()) + "/s";
  }
  if (timings.first_token_us() > 0)
    out += "; first after " + milliseconds(timings.first_token_us());
  if (timings.load_us() > 0) out += "; loaded in " + milliseconds(timings.load_us());
  return out;
}

}  // namespace berth::cli
