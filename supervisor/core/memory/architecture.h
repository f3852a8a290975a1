#pragma once

#include <cstdint>
#include <string_view>

namespace berth::core {

// Whether some layers of an architecture see a sliding window only.
enum class WindowRule : std::uint8_t {
  kNever,    // every layer keeps all cells, whatever the file says
  kWithKey,  // where the file has `attention.sliding_window`
  kAlways,   // the window is that of the file, else the architecture's own
};

// What an architecture's layers keep besides cells, or instead of them.
enum class StateRule : std::uint8_t {
  kNone,
  kEvery,      // every layer a state, no cells
  kWithoutKv,  // the layers without KV heads
  kInterval,   // as `attention.recurrent_layers` says, else all but every n-th
               // (`full_attention_interval`)
  kBesides,    // every layer both
};

// How libllama keeps what a model of one architecture has read (src/models/*.cpp and
// src/llama-model.cpp of llama.cpp 0.7.0).
struct ArchitectureRules {
  std::string_view name;  // general.architecture
  WindowRule window = WindowRule::kNever;
  std::uint32_t period = 0;       // of the pattern of windowed layers, unless the file has one
  bool full_first = false;        // the layer of each period that sees all is its first, not last
  std::uint32_t own_window = 0;   // tokens; kWithKey: instead of what the file says
  std::uint32_t only_layers = 0;  // a window only in the model of so many layers; 0: in all
  StateRule state = StateRule::kNone;
  bool encoder = false;    // no memory at all
  bool estimated = false;  // we know of its cells, not of all that it keeps
};

// Null: an architecture that this table does not have.
const ArchitectureRules* find_architecture(std::string_view name);

}  // namespace berth::core
