#pragma once

#include <string>
#include <string_view>

namespace berth::worker {

// The linker's build ids of this program and of the libraries in this process whose file name
// contains one of "llama", "ggml": "berth-worker 1a2b3c4d5e6f7081, libllama.so.0 …". Changes when
// any of them is another build.
std::string loaded_build_ids(std::string_view program);

}  // namespace berth::worker
