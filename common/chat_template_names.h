#pragma once

#include <span>
#include <string_view>

namespace berth {

// The chat templates that libllama brings along, by name, in alphabetical order: what
// `chat_template = "builtin:NAME"` takes. berthd links no libllama, so it has them from the build,
// which asks the libllama that berth-worker is linked with.
std::span<const std::string_view> chat_template_names();

}  // namespace berth
