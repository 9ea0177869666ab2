#include "trainer/trainer.h"

#include <algorithm>
#include <cmath>

#include "trainer/fused-attention.h"

namespace onpolicy::training {
namespace {

constexpr int64_t kMaxRow = 32768;
// Multiplications of one layer's largest matmul from which on several threads are faster than one.
constexpr int64_t kSharedWork = 16 << 20;
// Gradients are scaled by a power of two so that the largest is below 2^kGradientExponent.
constexpr int kGradientExponent = 10;
constexpr size_t kDefaultKeptBytes = size_t{2} << 30;

void Zero(Slot slot, int64_t count) {
  Graph graph(1);
  Api().ggml_backend_tensor_memset(graph.At(slot, GGML_TYPE_F32, {count}), 0, 0,
                                   static_cast<size_t>(count) * sizeof(float));
}

}  // namespace

std::unique_ptr<Trainer> Trainer::Open(const TrainerOptions& options) {
  auto trainer = std::unique_ptr<Trainer>(new Trainer);
  trainer->options_ = options;
  trainer->device_ = Device::Open(options.device, options.threads);
  Device* device = trainer->device_.get();
  trainer->weights_ = Weights::Load(device, options.model);
  if (options.wide) trainer->weights_->Widen(device);
  trainer->adapter_ = Adapter::Create(device, trainer->weights_.get(), options.modules, options.rank, options.alpha);
  return trainer;
}

size_t Trainer::memory_bytes() const {
  size_t bytes = device_->scratch_bytes() + weights_->transposed_taken();
  if (memory_) bytes += memory_->bytes();
  return bytes;
}

int64_t Trainer::LayersToKeep(const RowMemory::Need& need) const {
  const size_t each = RowMemory::KeptBytes(*weights_, need.size);
  size_t available = kDefaultKeptBytes;
  if (options_.memory_budget > 0) {
    // Temporary results of a layer take about as much as a stored one, twice that in the backward pass; then a chunk of
    // logits and its copy.
    const size_t fixed = weights_->transposed_bytes() + RowMemory::FixedBytes(*weights_, need) + 3 * each +
                         2 * sizeof(float) * static_cast<size_t>(HeadChunk(*weights_) * shape().vocabulary);
    available = options_.memory_budget > fixed ? options_.memory_budget - fixed : 0;
  }
  return std::min<int64_t>(shape().layers, static_cast<int64_t>(available / each));
}

void Trainer::PrepareRow(const PackedRow& row, bool gradients) {
  row_.size = row.size();
  device_->UseThreads(row.size() * shape().width * shape().hidden_width() >= kSharedWork);
  row_.attention.runs.clear();
  if (HasFusedAttention(*device_, shape())) row_.attention.runs = TokenRunsOf(row, shape().window);
  row_.attention.plan = {};  // the way back is made of matmuls
  if (gradients || row_.attention.runs.empty()) row_.attention.plan = PlanAttention(row, shape().window);
  targets_ = row.targets();
  RowMemory::Need need{.size = row.size(),
                       .targets = targets_,
                       .mask_values = row_.attention.plan.masks.size(),
                       .gradients = gradients};
  if (gradients) need.kept_layers = LayersToKeep(need);
  if (!memory_ || !need.FitsInto(memory_->need())) {
    size_t gradient_bytes = 0;
    for (const Layer& layer : weights_->layers)
      gradient_bytes = std::max(gradient_bytes, Linears::GradientBytes(layer, *adapter_));
    memory_ = RowMemory::Create(device_.get(), *weights_, gradient_bytes, need, std::move(memory_));
  }
  row_.positions = memory_->positions;
  row_.attention.masks = memory_->masks;
  Upload(memory_->tokens, GGML_TYPE_I32, row.tokens.data(), row.tokens.size());
  Upload(memory_->positions, GGML_TYPE_I32, row.positions.data(), row.positions.size());
  if (const auto& masks = row_.attention.plan.masks; !masks.empty())
    Upload(memory_->masks, GGML_TYPE_F32, masks.data(), masks.size());
  Upload(memory_->logit_rows, GGML_TYPE_I32, row.logit_rows.data(), row.logit_rows.size());
  PutTargets(*device_, *weights_, *memory_, row.target_tokens);
}

Scores Trainer::Forward(PackedRow row, bool gradients, bool adapter_off) {
  is_forward_fresh_ = false;
  row.Check(shape().vocabulary);
  if (is_adapter_stale_) adapter_->Upload();
  is_adapter_stale_ = false;
  row.Pad(kRowMultiple);
  if (row.size() > kMaxRow)
    throw Failure("INVALID_REQUEST", "tokens: a row holds at most " + std::to_string(kMaxRow));
  if (gradients) weights_->Transpose(device_.get());
  PrepareRow(row, gradients);

  Graph graph(16);
  Tensor tokens = graph.At(memory_->tokens, GGML_TYPE_I32, {row_.size});
  // The embedding stays with the CPU on every device.
  Tensor stream = graph.At(memory_->Residual(0), GGML_TYPE_F32, {shape().width, row_.size});
  graph.Add(graph.Copy(weights_->Embed(graph, tokens), stream));
  device_->Run(graph);
  for (int64_t i = 0; i < shape().layers; ++i) ForwardLayer(i, adapter_off ? nullptr : adapter_.get());
  Scores scores = HeadForward(device_.get(), *weights_, *memory_, row_.size, targets_);
  is_forward_fresh_ = gradients && !adapter_off;
  return scores;
}

void Trainer::ForwardLayer(int64_t index, const Adapter* adapter) {
  const bool is_kept = index < static_cast<int64_t>(memory_->kept.size());
  const ActivationSlots& slots = is_kept ? memory_->kept[static_cast<size_t>(index)] : memory_->scratch;
  Graph graph;
  Linears linears(graph, *device_, adapter, nullptr);
  const Layer& layer = weights_->layers[static_cast<size_t>(index)];
  LayerGraph part(graph, linears, *weights_, layer, row_);
  Tensor x = graph.At(memory_->Residual(index), GGML_TYPE_F32, {shape().width, row_.size});
  Activations kept;
  kept.attended = graph.At(slots.attended, GGML_TYPE_F32, {shape().query_width(), row_.size});
  part.Attend(x, kept);
  kept.middle = part.Middle(x, kept);
  part.FeedForward(kept);
  if (is_kept) {
    graph.Pin(kept.query, slots.query);
    graph.Pin(kept.key, slots.key);
    graph.Pin(kept.value, slots.value);
    graph.Pin(kept.middle, slots.middle);
    graph.Pin(kept.gate, slots.gate);
    graph.Pin(kept.up, slots.up);
  }
  graph.Add(graph.Pin(part.Output(kept), memory_->Residual(index + 1)));
  device_->Run(graph);
}

void Trainer::Backward(const std::vector<float>& gradient) {
  if (!is_forward_fresh_)
    throw Failure("INVALID_REQUEST", "backward needs a forward of the same row and adapter just before it");
  if (static_cast<int64_t>(gradient.size()) != targets_)
    throw Failure("INVALID_REQUEST", "gradLogprobs: expected " + std::to_string(targets_) + " entries, got " +
                                               std::to_string(gradient.size()));
  try {
    BackwardLayers(gradient);
  } catch (...) {
    adapter_->ZeroGradients();
    throw;
  }
}

void Trainer::BackwardLayers(const std::vector<float>& gradient) {
  // Matmuls with quantized weights round gradients to blocks with a 16-bit scale: this centres them in its range.
  float largest = 0;
  for (float value : gradient) largest = std::max(largest, std::abs(value));
  int exponent = 0;
  if (std::isfinite(largest) && largest > 0) std::frexp(largest, &exponent);
  gradient_scale_ = std::ldexp(1.0f, exponent - kGradientExponent);
  std::vector<float> scaled = gradient;
  for (float& value : scaled) value = std::ldexp(value, kGradientExponent - exponent);
  HeadBackward(device_.get(), *weights_, *memory_, row_.size, scaled);
  int current = 0;
  for (int64_t i = shape().layers - 1; i >= 0; --i, current = 1 - current)
    BackwardLayer(i, memory_->gradients[current], memory_->gradients[1 - current]);
}

void Trainer::BackwardLayer(int64_t index, Slot gradient_slot, Slot input_gradient_slot) {
  const bool is_kept = index < static_cast<int64_t>(memory_->kept.size());
  const ActivationSlots& slots = is_kept ? memory_->kept[static_cast<size_t>(index)] : memory_->scratch;
  const Layer& layer = weights_->layers[static_cast<size_t>(index)];
  Zero(memory_->layer_scratch.key_gradient, shape().kv_width() * row_.size);
  Zero(memory_->layer_scratch.value_gradient, shape().kv_width() * row_.size);
  Graph graph;
  Linears linears(graph, *device_, adapter_.get(), memory_->gradient_outputs());
  LayerGraph part(graph, linears, *weights_, layer, row_);
  auto at = [&](Slot slot, int64_t rows) { return graph.At(slot, GGML_TYPE_F32, {rows, row_.size}); };
  Tensor x = at(memory_->Residual(index), shape().width);
  Activations kept;
  kept.attended = at(slots.attended, shape().query_width());
  if (is_kept) {
    kept.query = at(slots.query, shape().query_width());
    kept.key = at(slots.key, shape().kv_width());
    kept.value = at(slots.value, shape().kv_width());
    kept.middle = at(slots.middle, shape().width);
    kept.gate = at(slots.gate, shape().hidden_width());
    kept.up = at(slots.up, shape().hidden_width());
  } else {
    part.Attend(x, kept);
    kept.middle = part.Middle(x, kept);
    part.FeedForward(kept);
  }
  const bool is_first = index == 0;
  Tensor input_gradient =
      part.Backward(x, kept, at(gradient_slot, shape().width), memory_->layer_scratch, !is_first);
  if (input_gradient) graph.Add(graph.Pin(input_gradient, input_gradient_slot));
  device_->Run(graph);

  const Library& api = Api();
  std::vector<float> a, b;
  for (const GradientOutput& output : linears.outputs()) {
    a.resize(static_cast<size_t>(api.ggml_nelements(output.a)));
    b.resize(static_cast<size_t>(api.ggml_nelements(output.b_transposed)));
    api.ggml_backend_tensor_get(output.a, a.data(), 0, a.size() * sizeof(float));
    api.ggml_backend_tensor_get(output.b_transposed, b.data(), 0, b.size() * sizeof(float));
    adapter_->Accumulate(output.module, gradient_scale_, a.data(), b.data());
  }
}

StepResult Trainer::Step(const OptimizerOptions& options) {
  AdapterChanged();
  return adapter_->Step(options);
}

}  // namespace onpolicy::training
