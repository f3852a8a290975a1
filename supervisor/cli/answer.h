#pragma once

#include <optional>
#include <string>

#include "supervisor/cli/context.h"
#include "supervisor/cli/interrupts.h"
#include "supervisor/cli/progress.h"

namespace berth::cli {

// How one generation went, as it was shown.
struct Answer {
  std::string text;
  std::optional<v1::Done> done;
  std::optional<CallError> error;  // neither done nor stopped by a signal
  Caught caught = Caught::kNone;   // a signal stopped it; `text` is what came before
};

// Asks the daemon and shows the answer on the standard output as it comes (with --json: each event
// as a line), and on the standard error how far the wait for it is. Text ends with a newline.
// Errors are returned, not told.
Answer ask(Context& context, const v1::GenerateRequest& request, bool verbose);

// The same for a single question: signals are taken over when the daemon is there, and a second one
// ends the program.
Answer ask_alone(Context& context, const v1::GenerateRequest& request, bool verbose);

// Tells what is left to tell of the answer to a single question, and how the program ends.
ExitCode end_of(Context& context, const v1::GenerateRequest& request, const Answer& answer,
                bool verbose);

// Copies what was given on the command line.
void set_sampling(v1::GenerateRequest& request, const SamplingOptions& sampling);

// The words of a prompt as one text: joined by blanks, a word "-" replaced by the standard input.
// Errors: kInvalidArgument (input too large or unreadable, not UTF-8, empty).
Result<std::string> prompt_text(const Environment& environment,
                                const std::vector<std::string>& words);

// "waiting, next in line", "waiting, 2 ahead"
std::string describe_queued(const v1::Queued& queued);
// A load as progress of `model` (printable).
ProgressState describe_loading(std::string_view model, const v1::Loading& loading);

// "12 tokens read (8 of them known), 34 written at 56.1/s; first after 120 ms; loaded in 1.2 s"
std::string describe_usage(const v1::Done& done);

}  // namespace berth::cli
