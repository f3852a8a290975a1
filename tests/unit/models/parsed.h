#pragma once

#include <gtest/gtest.h>

#include <string>

#include "common/gguf/gguf.h"
#include "common/gguf/parse.h"
#include "tests/models/memory_source.h"

namespace berth::test_models {

// What our own reader makes of a file's bytes; an empty header, and a failed test, where it refuses
// them.
inline gguf::Header parsed(const std::string& bytes) {
  MemorySource source(bytes);
  auto header = gguf::parse_header(source, bytes.size(), "x");
  EXPECT_TRUE(header.has_value()) << header.error().message;
  return header ? *header : gguf::Header();
}

// A tensor of the header; null: there is none of that name.
inline const gguf::Tensor* find_tensor(const gguf::Header& header, std::string_view name) {
  for (const gguf::Tensor& tensor : header.tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

}  // namespace berth::test_models
