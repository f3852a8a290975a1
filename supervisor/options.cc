#include "supervisor/options.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>

#include "common/version.h"

namespace berth {

std::optional<DaemonOptions> parse_options(int argc, char** argv, int& exit_code) {
  DaemonOptions options;
  CLI::App app("berthd serves local language models on this machine.", "berthd");
  app.set_version_flag(
      "--version",
      std::string("berthd ") + std::string(kVersion) + " (" + std::string(kBuildId) + ")",
      "Print the version and end");
  auto* config = app.add_option("--config", options.config_file,
                                "Configuration file (default: /etc/berth/berth.toml, or "
                                "BERTH_CONFIG)")
                     ->type_name("FILE");
  app.add_option("--demo", options.demo_dir,
                 "Run wholly inside DIR with safe defaults and a small model; needs no root")
      ->type_name("DIR")
      ->excludes(config);
  std::string log_format = "logfmt";
  app.add_option("--log-format", log_format, "Form of the events on standard output")
      ->check(CLI::IsMember({"logfmt", "json"}))
      ->type_name("");
  app.footer(
      "Exit status: 0 stopped as told; 1 could not start or failed; 2 wrong use or configuration.\n"
      "Signals: SIGTERM and SIGINT finish the streams and stop (a second one ends them at once);\n"
      "SIGHUP reads the configuration and the model directories again.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    exit_code = app.exit(problem) == 0 ? 0 : 2;
    return std::nullopt;
  }
  options.log_format = log_format == "json" ? LogFormat::kJson : LogFormat::kLogfmt;
  if (!options.demo_dir.empty()) {
    options.demo_dir = std::filesystem::absolute(options.demo_dir).lexically_normal().string();
    if (options.demo_dir.size() > 1 && options.demo_dir.ends_with('/')) options.demo_dir.pop_back();
  }
  return options;
}

}  // namespace berth
