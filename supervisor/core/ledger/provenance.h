#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"

namespace berth::core {

// One file of a model. A file that cannot be looked at has size and times 0: when it can be, it is
// another one.
struct FileIdentity {
  std::string path;
  std::uint64_t size = 0;         // bytes
  std::int64_t modified_ns = 0;   // Unix time
  std::uint64_t header_hash = 0;  // XXH3 of the GGUF header; 0: none was read

  bool operator==(const FileIdentity&) const = default;
};

// One file that a command model is started with: its program, or a file that one of its arguments
// names, like a script. Where there is none that can be used all but the path is 0.
struct ProgramFile {
  std::string path;
  std::uint64_t size = 0;        // bytes
  std::int64_t modified_ns = 0;  // Unix time
  std::uint64_t inode = 0;

  bool operator==(const ProgramFile&) const = default;
};

// Of the keys and of the values in the cache, as libllama names it: "f16", "q8_0".
struct KvTypes {
  std::string keys;
  std::string values;

  bool operator==(const KvTypes&) const = default;
};

struct DeviceIdentity {
  std::string id;      // as libllama names it: "CUDA0"
  std::string driver;  // its name and version

  bool operator==(const DeviceIdentity&) const = default;
};

// What a load depends on (L19). A standing failure is about exactly this: as soon as one field is
// another one, nothing is known any more. A field that is absent is not known, which is never taken
// for a change. Taken when the load starts. A value; pure.
struct Provenance {
  std::optional<std::string> runtime;              // build id of the worker's runtime
  std::optional<std::vector<FileIdentity>> files;  // every shard, in order; adapters, draft
  std::optional<std::map<std::string, std::uint64_t>> budget;  // bytes by memory domain
  std::optional<std::uint32_t> sequences;
  std::optional<std::uint32_t> window;  // tokens that it is served with
  std::optional<KvTypes> kv_types;
  std::optional<std::vector<DeviceIdentity>> devices;  // empty: the processor alone
  std::optional<std::uint64_t> launch_hash;            // of launch_hash()
  std::optional<std::vector<ProgramFile>> program;     // the program first; of commands only

  bool operator==(const Provenance&) const = default;
};

enum class ProvenanceField : std::uint8_t {
  kRuntime,
  kFiles,
  kBudget,
  kSequences,
  kWindow,
  kKvTypes,
  kDevices,
  kLaunch,
  kProgram,
};
inline constexpr std::size_t kProvenanceFields = 9;

// "runtime", "files", …: stable, for scripts and the store.
std::string_view provenance_field_name(ProvenanceField field);
std::optional<ProvenanceField> provenance_field_from_name(std::string_view name);

// The arguments of a launch, *before* anything that differs from run to run is filled in: `{port}`,
// `{socket}` and `{api_key}` stand as they are, and the caller leaves run directories out. The
// environment counts as a set: its order means nothing. The hash is XXH3 and can be kept; what was
// hashed (there may be keys among it) cannot be read from it. `settings`: whatever else decides how
// the load goes, each with its name, in a fixed order.
std::uint64_t launch_hash(const std::vector<std::string>& argv,
                          const std::vector<std::string>& environment,
                          std::string_view chat_template,
                          const std::vector<std::string>& settings = {});

// One text for all that is known of it, to be compared and kept: as long as nothing moves it is the
// same, in every run of the same version. 16 hexadecimal digits.
std::string provenance_hash(const Provenance& provenance);

// A field that moved, in words for an operator. The words hold no path and nothing of argv or of
// the environment.
struct MovedField {
  ProvenanceField field = ProvenanceField::kRuntime;
  std::string was;  // empty where there is nothing to say
  std::string now;

  bool operator==(const MovedField&) const = default;
};
// "the served window moved: 4096 -> 8192"
std::string to_string(const MovedField& moved);

// The first field that is known on both sides and is another one, `program` last; absent: none. A
// driver that could not be told, on either side, is not known.
std::optional<MovedField> moved_field(const Provenance& old, const Provenance& now);

// Whether the two programs differ, but only by files of arguments.
bool only_arguments_moved(const Provenance& old, const Provenance& now);

// Whether all that differs between the programs of the two are files of arguments that were written
// in that time: as by the program itself, which may keep a log or a lock where an argument says.
// Their paths; absent: something else differs, too, or nothing does.
std::optional<std::vector<std::string>> arguments_written(const Provenance& old,
                                                          const Provenance& now, WallTime from,
                                                          WallTime to);

// One text for each field, empty for one that is not known; in the order of ProvenanceField. The
// forms are stable, as they are kept: what one version writes every later one reads.
using ProvenanceTexts = std::array<std::string, kProvenanceFields>;
ProvenanceTexts to_texts(const Provenance& provenance);
// What cannot be read of a field makes that field unknown, not the others.
Provenance provenance_from_texts(const ProvenanceTexts& texts);

}  // namespace berth::core
