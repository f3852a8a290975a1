#pragma once

#include <string>

// Files in sentences about models.
namespace berth::catalog {

// The name of that file without its folders, at most 255 bytes, printable.
std::string file_name_of(const std::string& path);

// A sentence that can be gone on with.
std::string without_stop(std::string text);

}  // namespace berth::catalog
