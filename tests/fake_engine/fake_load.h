#pragma once

#include <memory>
#include <tl/expected.hpp>

#include "worker/engine/engine.h"

namespace berth::worker {

// Loads a FakeEngine as a model is loaded: opens the file (which waits where it is a FIFO), takes
// the settings that stand in it (see find_fake_settings), and reports phases and bytes as long as
// it is told to take. A file without settings is a quick model that never ends an answer. What
// `settings` says of sequences, window, batch, threads and purpose comes before what the file says.
tl::expected<std::unique_ptr<Engine>, LoadFailure> load_fake_engine(const EngineSettings& settings,
                                                                    LoadObserver& observer);

}  // namespace berth::worker
