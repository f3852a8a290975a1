#pragma once

#include "tests/models/gguf_writer.h"

namespace berth::test_models {

// A projector for images ("mmproj"), for a catalogue to list: a right header and two small tensors,
// which no program can compute with.
GgufWriter make_projector();

}  // namespace berth::test_models
