#pragma once

#include <optional>
#include <string>

#include "supervisor/cli/context.h"
#include "supervisor/cli/options.h"

// The verbs of `berth`. Each does its work, prints, and says how the program ends.

namespace berth::cli {

ExitCode run_models(Context& context);
// Names of all models, one a line, for completion in a shell. Silent where there is no daemon.
ExitCode run_model_names(Context& context);
ExitCode run_ps(Context& context);
ExitCode run_load(Context& context, const LoadOptions& options);
ExitCode run_retry(Context& context, const LoadOptions& options);
ExitCode run_failures(Context& context, const FailuresOptions& options);
ExitCode run_why(Context& context, const WhyOptions& options);
// What became of the request of this id, from the events that are kept; nothing, and nothing
// printed, where none of them names it.
std::optional<ExitCode> why_request(Context& context, Client& client, const std::string& id);
ExitCode run_unload(Context& context, const UnloadOptions& options);
ExitCode run_plan(Context& context, const PlanOptions& options);
ExitCode run_memory(Context& context);
ExitCode run_pin(Context& context, const PinOptions& options);
ExitCode run_unpin(Context& context, const PinOptions& options);
ExitCode run_logs(Context& context, const LogsOptions& options);
ExitCode run_events(Context& context, const EventsOptions& options);
ExitCode run_classify_log(Context& context, const ClassifyLogOptions& options);
ExitCode run_complete(Context& context, const CompleteOptions& options);
ExitCode run_config_check(Context& context, const ConfigCheckOptions& options);
ExitCode run_config_show(Context& context, const ConfigShowOptions& options);
ExitCode run_keys_add(Context& context, const KeysOptions& options);
ExitCode run_keys_list(Context& context, const KeysOptions& options);
ExitCode run_keys_revoke(Context& context, const KeysOptions& options);
ExitCode run_version(Context& context);

}  // namespace berth::cli
