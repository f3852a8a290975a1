#pragma once

#include <string>

namespace berth::worker {

// Whether this libllama has an architecture of that name. It has no list of them, but says so of a
// file: it is given one that is nothing but this name. Needs no backend. True also where it cannot
// be asked.
bool llama_knows_architecture(const std::string& name);

}  // namespace berth::worker
