#include "trainer/row-memory.h"

#include <algorithm>

namespace onpolicy::training {
namespace {

size_t Floats(int64_t rows, int64_t columns) { return static_cast<size_t>(rows * columns) * sizeof(float); }

int64_t InputsWidth(const Layer& layer) {
  int64_t width = 0;
  for (const Linear* linear : layer.mixer_inputs()) width += linear->out();
  return width;
}

// The largest widths of any layer.
struct Widths {
  int64_t mixed = 0, query = 0, kv = 0;
  int64_t state = 0;  // of a delta net, all of it
};

Widths WidthsOf(const Weights& weights) {
  Widths widths;
  for (const Layer& layer : weights.layers) {
    const DeltaNetShape& net = weights.shape.delta_net;
    widths.mixed = std::max(widths.mixed, layer.mixed_width());
    widths.query = std::max(widths.query, layer.shape.attention.query_width());
    widths.kv = std::max(widths.kv, layer.shape.attention.kv_width());
    widths.state = std::max(widths.state, net.value_width() * net.size);
  }
  return widths;
}

}  // namespace

bool RowMemory::Need::FitsInto(const Need& other) const {
  return size <= other.size && targets <= other.targets && mask_values <= other.mask_values &&
         gradients == other.gradients && kept_layers == other.kept_layers;
}

size_t RowMemory::KeptBytes(const Weights& weights, const Layer& layer, int64_t size) {
  return Floats(InputsWidth(layer) + layer.mixed_width() + weights.shape.width + 2 * layer.hidden_width(weights.shape), size);
}

std::unique_ptr<RowMemory> RowMemory::Plan(Device* device, const Weights& weights, size_t gradient_bytes, const Need& need,
                                           std::unique_ptr<RowMemory> former) {
  auto memory = std::make_unique<RowMemory>();
  memory->need_ = need;
  memory->arena_ = former ? std::move(former->arena_) : std::make_unique<Arena>(device);
  memory->gradient_outputs_ = former ? std::move(former->gradient_outputs_) : std::make_unique<Arena>(device);
  memory->arena_->Clear();
  memory->gradient_outputs_->Clear();
  memory->Reserve(weights, gradient_bytes);
  return memory;
}

std::unique_ptr<RowMemory> RowMemory::Create(Device* device, const Weights& weights, size_t gradient_bytes, const Need& need,
                                             std::unique_ptr<RowMemory> former) {
  auto memory = Plan(device, weights, gradient_bytes, need, std::move(former));
  memory->arena_->Allocate();
  memory->gradient_outputs_->Allocate();
  Zero(memory->zeros, WidthsOf(weights).state);
  return memory;
}

void RowMemory::Reserve(const Weights& weights, size_t gradient_bytes) {
  const Need& need = need_;
  Arena* arena = arena_.get();
  auto reserve = [arena](int64_t rows, int64_t columns) {
    return Slot{arena, arena->Reserve(Floats(rows, columns))};
  };
  const Shape& shape = weights.shape;
  tokens = reserve(1, need.size);
  positions = reserve(kPositions, need.size);
  masks = reserve(1, static_cast<int64_t>(need.mask_values + 1) / 2);  // of two bytes each
  logit_rows = reserve(1, need.targets);
  target_tokens = reserve(1, need.targets);
  flat_targets = reserve(1, need.targets);
  head_stats = reserve(2, need.targets);
  coldness = reserve(1, need.targets);
  const int64_t residuals = need.gradients ? shape.layers + 1 : 2;
  for (int64_t i = 0; i < residuals; ++i) residuals_.push_back(reserve(shape.stream_width(), need.size));
  const Widths widths = WidthsOf(weights);
  zeros = reserve(widths.state, 1);
  experts = reserve(shape.experts_used * shape.expert_layers(), need.size);
  own_inputs = reserve(shape.input_width * shape.layers, need.size);
  for (const LayerShape& layer : shape.of_layer) {
    SharedKeys& keys = shared_keys.emplace_back();
    if (!layer.attention.is_kv_read) continue;
    const int64_t width = layer.attention.kv_width();
    keys.key = reserve(width, need.size);
    keys.value = reserve(width, need.size);
    if (need.gradients) keys.key_gradient = reserve(width, need.size);
    if (need.gradients) keys.value_gradient = reserve(width, need.size);
  }
  scratch.mixed = reserve(widths.mixed, need.size);
  if (need.gradients) {
    head_gradient = reserve(1, need.targets);
    head_errors = reserve(shape.width, need.targets);
    for (Slot& slot : gradients) slot = reserve(shape.stream_width(), need.size);
    layer_scratch = {reserve(widths.query, need.size), reserve(widths.kv, need.size), reserve(widths.kv, need.size)};
    for (int64_t i = 0; i < need.kept_layers; ++i) {
      const Layer& layer = weights.layers[static_cast<size_t>(i)];
      ActivationSlots slots;
      for (const Linear* linear : layer.mixer_inputs()) slots.inputs.push_back(reserve(linear->out(), need.size));
      slots.mixed = reserve(layer.mixed_width(), need.size);
      slots.middle = reserve(shape.width, need.size);
      slots.gate = reserve(layer.hidden_width(shape), need.size);
      slots.up = reserve(layer.hidden_width(shape), need.size);
      kept.push_back(std::move(slots));
    }
    gradient_outputs_->Reserve(gradient_bytes);
  }
}

}  // namespace onpolicy::training
