#pragma once

#include <string>

#include "common/manual/command.h"
#include "common/manual/man_page.h"

namespace berth::manual {

// The same as man_page(), as a page of the documentation. `origin` says how the page is made.
std::string markdown_page(const Command& command, const ManPage& page, const std::string& origin);

}  // namespace berth::manual
