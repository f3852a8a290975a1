#pragma once

#include <string>

#include "supervisor/catalog/config.h"

namespace berth::catalog {

// Texts made from the table of settings.

// docs/configuration.md
std::string configuration_page();

// deploy/berth.toml.example: every setting with its default, commented out.
std::string example_file();

// What `berth config show` prints: every setting's effective value and where it came from, as a
// configuration file that gives this configuration again.
std::string show_config(const Config& config);

}  // namespace berth::catalog
