#pragma once

#include <string>

#include "worker/engine/builtin_templates.h"

namespace berth::worker {

// Which chat template a worker is to use, and with what.
struct TemplateChoice {
  // The operator's template, or the name of one that is built in; empty: the model's own.
  std::string source;
  bool named = false;
  std::string program;  // path of berth-template
  BuiltinTemplates builtin;
};

}  // namespace berth::worker
