#include "tests/models/projector.h"

namespace berth::test_models {

GgufWriter make_projector() {
  GgufWriter projector;
  projector.set_text("general.architecture", "clip");
  projector.set_text("general.type", "mmproj");
  projector.set_text("general.name", "random projector");
  projector.set_u32("general.file_type", file_type(TensorType::kF16));
  projector.set_bool("clip.has_vision_encoder", true);
  projector.set_text("clip.projector_type", "mlp");
  projector.set_u32("clip.vision.image_size", 28);
  projector.set_u32("clip.vision.patch_size", 14);
  projector.set_u32("clip.vision.embedding_length", 32);
  projector.set_u32("clip.vision.feed_forward_length", 64);
  projector.set_u32("clip.vision.projection_dim", 64);
  projector.set_u32("clip.vision.block_count", 1);
  projector.set_u32("clip.vision.attention.head_count", 2);
  projector.set_f32("clip.vision.attention.layer_norm_epsilon", 1e-5F);
  const auto zeros = [](std::vector<float>& values, std::uint64_t) {
    for (float& value : values) value = 0.0F;
  };
  projector.add_tensor("v.patch_embd.weight", TensorType::kF16, {14, 14, 3, 32}, zeros);
  projector.add_tensor("mm.0.weight", TensorType::kF16, {32, 64}, zeros);
  return projector;
}

}  // namespace berth::test_models
