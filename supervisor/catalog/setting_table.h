#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/catalog/config.h"
#include "supervisor/catalog/setting_value.h"

namespace berth::catalog {

// The one table of all settings. From it come the checks, the defaults, `berth config show`,
// docs/configuration.md and deploy/berth.toml.example.

enum class Section : std::uint8_t {
  kServer,
  kAuth,
  kMemory,
  kDevice,
  kSessions,
  kIdle,
  kDefaults,
  kModels,
  kModel,
};

struct SectionSpec {
  Section section;
  std::string_view name;      // dotted, without the name of the device or model
  std::string_view instance;  // what names one of several: "ID", "NAME"; empty: there is only one
  std::string_view doc;
};

enum class SettingType : std::uint8_t {
  kSwitch,
  kCount,     // whole number
  kFraction,  // number
  kSize,      // bytes
  kDuration,  // milliseconds
  kText,
  kChoice,
  kPath,
  kHostPort,
  kTextList,
  kNameList,  // names of models
  kPathList,
  kListenList,
  kHostList,    // names or addresses, without a port
  kOriginList,  // of web pages: scheme://host[:port]
  kProbe,
  kTextMap,
  kSizeMap,
};

// Which kind of model a setting is for.
enum class Applies : std::uint8_t { kEvery, kLlama, kCommand };

// Where a checked value goes.
struct SettingTarget {
  Config* config = nullptr;
  ConfiguredModel* model = nullptr;  // also the carrier of [defaults]
  core::DeviceBudget* device = nullptr;
};

struct SettingSpec {
  Section section = Section::kServer;
  std::string_view key;
  SettingType type = SettingType::kText;
  std::string_view fallback = {};  // the default as TOML
  double low = 0;                  // range, in the type's unit
  double high = 0;
  std::string_view word = {};     // taken besides: "auto", "off"
  std::string_view choices = {};  // of kChoice, separated by blanks
  std::string_view prefix = {};  // of a kPath: a text that begins with it is no path, but names …
  std::span<const std::string_view> (*prefix_names)() = nullptr;  // … one of these
  bool may_be_empty = false;
  bool used = false;  // by this version; else it is checked and reported as ignored
  Applies applies = Applies::kEvery;
  bool only_own = false;                                               // has no place in [defaults]
  void (*store)(const SettingTarget&, const SettingValue&) = nullptr;  // null: only shown
  std::string_view doc = {};
};

// In the order of the documentation.
std::span<const SectionSpec> all_sections();
const SectionSpec& section_spec(Section section);

// The settings of a section; those of [defaults] are those of a model, but for `only_own`.
std::vector<const SettingSpec*> settings_of(Section section);

// Null where there is none.
const SettingSpec* find_setting(Section section, std::string_view key);

}  // namespace berth::catalog
