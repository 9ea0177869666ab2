#include "trainer/row-memory.h"

namespace onpolicy::training {
namespace {

size_t Floats(int64_t rows, int64_t columns) { return static_cast<size_t>(rows * columns) * sizeof(float); }

}  // namespace

bool RowMemory::Need::FitsInto(const Need& other) const {
  return size <= other.size && targets <= other.targets && mask_values <= other.mask_values &&
         gradients == other.gradients && kept_layers == other.kept_layers;
}

size_t RowMemory::KeptBytes(const Weights& weights, int64_t size) {
  const Shape& shape = weights.shape;
  return Floats(2 * shape.query_width() + 2 * shape.kv_width() + shape.width + 2 * shape.hidden_width(), size);
}

size_t RowMemory::FixedBytes(const Weights& weights, const Need& need) {
  const Shape& shape = weights.shape;
  const int64_t residuals = need.gradients ? shape.layers + 1 : 2;
  size_t bytes = Floats(residuals * shape.width, need.size) + Floats(shape.query_width(), need.size) +
                 need.mask_values * sizeof(float);
  if (need.gradients)
    bytes += Floats(2 * shape.width + shape.query_width() + 2 * shape.kv_width(), need.size) + Floats(shape.width, need.targets);
  return bytes;
}

std::unique_ptr<RowMemory> RowMemory::Create(Device* device, const Weights& weights, size_t gradient_bytes, const Need& need,
                                             std::unique_ptr<RowMemory> former) {
  auto memory = std::make_unique<RowMemory>();
  memory->need_ = need;
  memory->arena_ = former ? std::move(former->arena_) : std::make_unique<Arena>(device);
  memory->gradient_outputs_ = former ? std::move(former->gradient_outputs_) : std::make_unique<Arena>(device);
  memory->arena_->Clear();
  memory->gradient_outputs_->Clear();
  Arena* arena = memory->arena_.get();
  auto reserve = [arena](int64_t rows, int64_t columns) {
    return Slot{arena, arena->Reserve(Floats(rows, columns))};
  };
  const Shape& shape = weights.shape;
  memory->tokens = reserve(1, need.size);
  memory->positions = reserve(1, need.size);
  memory->masks = reserve(1, static_cast<int64_t>(need.mask_values));
  memory->logit_rows = reserve(1, need.targets);
  memory->target_tokens = reserve(1, need.targets);
  memory->flat_targets = reserve(1, need.targets);
  memory->head_stats = reserve(2, need.targets);
  const int64_t residuals = need.gradients ? shape.layers + 1 : 2;
  for (int64_t i = 0; i < residuals; ++i) memory->residuals_.push_back(reserve(shape.width, need.size));
  memory->scratch.attended = reserve(shape.query_width(), need.size);
  if (need.gradients) {
    memory->head_gradient = reserve(1, need.targets);
    memory->head_errors = reserve(shape.width, need.targets);
    for (Slot& slot : memory->gradients) slot = reserve(shape.width, need.size);
    memory->layer_scratch = {reserve(shape.query_width(), need.size), reserve(shape.kv_width(), need.size),
                             reserve(shape.kv_width(), need.size)};
    for (int64_t i = 0; i < need.kept_layers; ++i)
      memory->kept.push_back({reserve(shape.query_width(), need.size), reserve(shape.kv_width(), need.size),
                              reserve(shape.kv_width(), need.size), reserve(shape.query_width(), need.size),
                              reserve(shape.width, need.size), reserve(shape.hidden_width(), need.size),
                              reserve(shape.hidden_width(), need.size)});
    memory->gradient_outputs_->Reserve(gradient_bytes);
  }
  memory->arena_->Allocate();
  memory->gradient_outputs_->Allocate();
  return memory;
}

}  // namespace onpolicy::training
