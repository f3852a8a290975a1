#pragma once

#include <string>
#include <string_view>

namespace berth {

// Appends `bytes` as base64 with its padding (RFC 4648, section 4).
void append_base64(std::string& out, std::string_view bytes);

}  // namespace berth
