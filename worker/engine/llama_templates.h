#pragma once

#include "worker/engine/builtin_templates.h"

namespace berth::worker {

// Those of libllama. Needs no model.
BuiltinTemplates llama_builtin_templates();

}  // namespace berth::worker
