#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "llama.h"
#include "worker/engine/engine.h"

namespace berth::worker {

// libllama has a function of the same name.
using PoolingType = enum llama_pooling_type;

// What a loaded model can be served for.
struct ModelKind {
  Purpose purpose = Purpose::kGenerate;
  PoolingType pooling = LLAMA_POOLING_TYPE_NONE;  // not none where it embeds
  // Whether it reads a text from left to right; else all at once.
  bool causal = true;
  // Whether it has a table of positions, past whose end libllama aborts the process: it must read
  // no more than it was trained for.
  bool fixed_window = false;
};

// A model embeds where the settings say so, and where it can do nothing else: an encoder, or a file
// that gives a pooling type. The pooling is the setting's, else the file's, else `last` for models
// that read from left to right (only their last token has seen the whole text) and `mean` for
// others. Errors: permanent, for what cannot be served: encoder-decoder and diffusion models,
// rerankers.
tl::expected<ModelKind, LoadFailure> kind_of(const llama_model* model,
                                             const EngineSettings& settings);

// The kind of a model without attention memory, which can do nothing but read a text at once and
// embed it, although its file does not say so. The pooling is the setting's, else `mean`.
ModelKind memoryless_kind(const EngineSettings& settings);

// The name of a pooling type; empty for none.
std::string_view pooling_name(PoolingType pooling);

// Why a file that libllama refused can never be loaded as a model although it is a good file: it is
// a projector or an adapter. Nothing for other files. Reads the file's header.
std::optional<LoadFailure> not_a_model(const std::string& path);

}  // namespace berth::worker
