#include <chrono>
#include <optional>
#include <string>

#include "common/text.h"
#include "common/units.h"
#include "supervisor/cli/answer.h"
#include "supervisor/cli/format/failure_text.h"
#include "supervisor/cli/progress.h"
#include "supervisor/cli/verbs/verbs.h"

namespace berth::cli {
namespace {

std::string describe(const v1::Instance& instance) {
  std::string text;
  if (instance.pid() > 0) text += "pid " + std::to_string(instance.pid());
  if (instance.window() > 0) {
    if (!text.empty()) text += ", ";
    text += "context " + std::to_string(instance.window());
  }
  return text.empty() ? text : " (" + text + ")";
}

using Call = Reply<void> (Client::*)(const v1::LoadModelRequest&, const Handler<v1::LoadEvent>&,
                                     const std::stop_token&);

// What stood against the model until the retry.
std::string describe_lifted(const v1::FailureRecord& failure, WallTime now) {
  return "lifted the failure of " + ago(failure.ended_unix_ms(), now) + " (" +
         printable_line(failure.class_(), 32) + ", " + failure_words(failure) + ")\n";
}

ExitCode follow(Context& context, const LoadOptions& options, Call call) {
  Environment& environment = context.environment();
  auto client = context.client();
  if (!client) return context.fail(client.error());
  environment.interrupts.take_over(Interrupts::Again::kEndsProgram);

  v1::LoadModelRequest request;
  request.set_model(options.model);
  request.set_no_wait(options.no_wait);

  const std::string name = printable_line(options.model, 256);
  const SteadyTime began = environment.now();
  Progress progress(environment, options.verbose);
  std::optional<v1::Instance> ready;
  std::optional<v1::Instance> started;
  const auto on_event = [&](const v1::LoadEvent& event) {
    if (context.json()) {
      progress.clear();
      context.print_json(event, JsonWriter::Layout::kLine);
    }
    switch (event.event_case()) {
      case v1::LoadEvent::kQueued: {
        ProgressState state{name + ": " + describe_queued(event.queued()), {}, {}};
        if (event.queued().has_eta_ms()) {
          state.eta = std::chrono::milliseconds(event.queued().eta_ms());
        }
        progress.show(std::move(state));
        break;
      }
      case v1::LoadEvent::kLoading:
        progress.show(describe_loading(name, event.loading()));
        break;
      case v1::LoadEvent::kReady:
        ready = event.ready();
        break;
      case v1::LoadEvent::kStarted:
        started = event.started();
        break;
      case v1::LoadEvent::kLifted:
        if (!context.json()) {
          progress.clear();
          context.print(describe_lifted(event.lifted(), environment.wall_now()));
        }
        break;
      case v1::LoadEvent::kError:
      case v1::LoadEvent::EVENT_NOT_SET:
        break;
    }
    return true;
  };
  Reply<void> reply;
  const Caught caught = environment.interrupts.during(
      [&](const std::stop_token& stop) { reply = ((*client)->*call)(request, on_event, stop); });
  progress.clear();

  if (reply && ready) {
    const auto took =
        std::chrono::duration_cast<std::chrono::milliseconds>(environment.now() - began);
    if (!context.json()) {
      context.print(name + " is ready" + describe(*ready) + ", took " +
                    format_duration_human(took) + "\n");
    }
    return ExitCode::kOk;
  }
  if (reply && started && options.no_wait) {
    if (!context.json()) {
      const bool was_ready = started->state() == "ready" || started->state() == "busy";
      context.print(was_ready ? name + " is ready" + describe(*started) + "\n"
                              : "the load of " + name + " has begun" + describe(*started) + "\n");
    }
    return ExitCode::kOk;
  }
  if (caught != Caught::kNone) {
    environment.err.write("berth: stopped watching; the load of " + name +
                          " goes on\n  'berth ps' shows it, 'berth unload " + name + "' ends it\n");
    return ExitCode::kInterrupted;
  }
  if (!reply) return context.fail(reply.error(), options.model);
  return context.refuse("the daemon ended the stream without saying whether " + name + " is ready");
}

}  // namespace

ExitCode run_load(Context& context, const LoadOptions& options) {
  return follow(context, options, &Client::load);
}

ExitCode run_retry(Context& context, const LoadOptions& options) {
  return follow(context, options, &Client::retry);
}

}  // namespace berth::cli
