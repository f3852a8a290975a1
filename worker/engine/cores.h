#pragma once

#include "common/cores.h"  // IWYU pragma: export

namespace berth::worker {

using berth::usable_cores;

}  // namespace berth::worker
