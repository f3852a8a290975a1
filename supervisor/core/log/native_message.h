#pragma once

#include <optional>
#include <string_view>

#include "supervisor/core/failure.h"

namespace berth::core {

// A message as ggml and llama.cpp print it: "FUNCTION: TEXT", with the component of llama-server
// maybe in front ("srv  load_model: "). Without a function all of it is the text.
struct NativeMessage {
  std::string_view function;
  std::string_view text;
};
NativeMessage split_native_message(std::string_view message);

// The grammars, by what they are about. Each looks at the begin of a message only.

// Failed allocations of device and host memory by ggml (D13).
bool is_failed_allocation(const NativeMessage& message);
// What llama.cpp and gguf say of a model file (D13, D14): permanent or resource.
std::optional<FailureClass> class_of_model_error(const NativeMessage& message);
// "CUDA error: …", "terminate called …" (D13, D15): resource or crash.
std::optional<FailureClass> class_of_runtime_error(const NativeMessage& message,
                                                   std::string_view whole);
// Why berth-worker does not even begin to load: a wrong option, a socket that cannot be had.
bool is_worker_refusal(std::string_view message);
// Ditto, for want of descriptors, memory or room: it may pass.
bool is_worker_shortage(std::string_view message);
// A port or socket that cannot be bound (D15).
bool is_failed_bind(const NativeMessage& message);
// Assertions, aborts of glibc, reports of sanitizers, of shells and of the dynamic linker (D15).
bool is_abort(std::string_view message);

}  // namespace berth::core
