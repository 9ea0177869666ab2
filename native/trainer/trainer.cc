#include "trainer/trainer.h"

#include <algorithm>
#include <cmath>

#include "trainer/fused-attention.h"
#include "trainer/streams.h"

namespace onpolicy::training {
namespace {

constexpr int64_t kMaxRow = 32768;
// Multiplications of one layer's largest matmul from which on several threads are faster than one.
constexpr int64_t kSharedWork = 16 << 20;
// Gradients are scaled by a power of two so that the largest is below 2^kGradientExponent.
constexpr int kGradientExponent = 10;
constexpr size_t kDefaultKeptBytes = size_t{2} << 30;

}  // namespace

std::unique_ptr<Trainer> Trainer::Open(const TrainerOptions& options) {
  auto trainer = std::unique_ptr<Trainer>(new Trainer);
  trainer->options_ = options;
  trainer->device_ = Device::Open(options.device, options.threads);
  Device* device = trainer->device_.get();
  trainer->weights_ = Weights::Load(device, options.model, options.context);
  if (options.wide) trainer->weights_->Widen(device);
  trainer->adapter_ = Adapter::Create(device, trainer->weights_.get(), options.modules, options.rank, options.alpha);
  return trainer;
}

size_t Trainer::memory_bytes() const {
  size_t bytes = device_->scratch_bytes() + weights_->transposed_taken();
  if (memory_) bytes += memory_->bytes();
  return bytes;
}

// Temporary results of a layer take about as much as stored ones, twice that in the backward pass; then a chunk of logits and its copy.
size_t Trainer::LeastBytes(const RowMemory::Need& need) const {
  return weights_->transposed_bytes() + RowMemory::FixedBytes(*weights_, need) + 3 * RowMemory::MostKeptBytes(*weights_, need.size) +
         2 * sizeof(float) * static_cast<size_t>(HeadChunk(*weights_) * shape().vocabulary);
}

int64_t Trainer::LayersToKeep(const RowMemory::Need& need) const {
  size_t available = kDefaultKeptBytes;
  if (options_.memory_budget > 0) {
    RequireMemory(need);
    available = options_.memory_budget - LeastBytes(need);
  }
  int64_t count = 0;
  for (const Layer& layer : weights_->layers) {
    const size_t bytes = RowMemory::KeptBytes(*weights_, layer, need.size);
    if (bytes > available) break;
    available -= bytes;
    ++count;
  }
  return count;
}

void Trainer::RequireMemory(const RowMemory::Need& need) const {
  const size_t budget = options_.memory_budget;
  if (budget == 0 || LeastBytes(need) <= budget) return;
  const auto mebibytes = [](size_t bytes) { return std::to_string((bytes >> 20) + 1) + " MiB"; };
  RowMemory::Need fitting = need;
  while (fitting.size > 0 && LeastBytes(fitting) > budget) {
    fitting.size -= kRowMultiple;
    const double part = static_cast<double>(fitting.size) / static_cast<double>(need.size);
    fitting.targets = static_cast<int64_t>(static_cast<double>(need.targets) * part);
    fitting.mask_values = static_cast<size_t>(static_cast<double>(need.mask_values) * part * part);
  }
  const std::string rows = fitting.size > 0 ? "about " + std::to_string(fitting.size) + " tokens fit into" : "no row fits into";
  throw Failure("OUT_OF_MEMORY", "memoryBudget: a row of " + std::to_string(need.size) + " tokens needs " +
                                     mebibytes(LeastBytes(need)) + " beside the weights; " + rows + " the " + mebibytes(budget));
}

void Trainer::CheckMemory(PackedRow row) const {
  if (options_.memory_budget == 0) return;
  row.Check(shape().vocabulary);
  row.Pad(kRowMultiple);
  RequireMemory({.size = row.size(),
                 .targets = row.targets(),
                 .mask_values = PlanAttention(row, shape().window).masks.size(),
                 .gradients = true});
}

void Trainer::PrepareRow(const PackedRow& row, bool gradients) {
  row_.size = row.size();
  device_->UseThreads(row.size() * shape().width * weights_->layers.back().hidden_width(shape()) >= kSharedWork);
  row_.attention.runs.clear();
  if (HasFusedAttention(*device_, shape())) row_.attention.runs = TokenRunsOf(row, shape().window);
  if (shape().is_recurrent()) row_.states = PlanStates(row);
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
  row_.zeros = memory_->zeros;
  row_.own_inputs = memory_->own_inputs;
  row_.shared_keys = memory_->shared_keys;
  Upload(memory_->tokens, GGML_TYPE_I32, row.tokens.data(), row.tokens.size());
  const std::vector<int32_t> positions = row.AllPositions();
  Upload(memory_->positions, GGML_TYPE_I32, positions.data(), positions.size());
  if (const auto& masks = row_.attention.plan.masks; !masks.empty())
    Upload(memory_->masks, GGML_TYPE_F32, masks.data(), masks.size());
  Upload(memory_->logit_rows, GGML_TYPE_I32, row.logit_rows.data(), row.logit_rows.size());
  PutTargets(*device_, *weights_, *memory_, row.target_tokens);
}

Scores Trainer::Forward(PackedRow row, bool gradients, bool adapter_off) {
  is_forward_fresh_ = false;
  row.Check(shape().vocabulary);
  if (const int64_t limit = shape().position_limit; limit > 0)
    for (int32_t position : row.positions)
      if (position >= limit)
        throw Failure("INVALID_REQUEST", "positions: training takes those below " + std::to_string(limit) +
                                             ", from which on this model scales its attention, got " + std::to_string(position));
  if (is_adapter_stale_) adapter_->Upload();
  is_adapter_stale_ = false;
  row.Pad(kRowMultiple);
  if (row.size() > kMaxRow)
    throw Failure("INVALID_REQUEST", "tokens: a row holds at most " + std::to_string(kMaxRow));
  if (gradients) weights_->Transpose(device_.get());
  PrepareRow(row, gradients);

  Graph graph(64);
  Tensor tokens = graph.At(memory_->tokens, GGML_TYPE_I32, {row_.size});
  // The embedding stays with the CPU on every device.
  Tensor stream = graph.At(memory_->Residual(0), GGML_TYPE_F32, {shape().stream_width(), row_.size});
  Tensor embedded = weights_->Embed(graph, tokens);
  Matmuls matmuls(graph, *device_);
  graph.Add(graph.Copy(shape().streams > 1 ? SpreadStreams(graph, matmuls, *weights_, embedded) : embedded, stream));
  if (shape().input_width > 0) {
    Tensor own = graph.At(memory_->own_inputs, GGML_TYPE_F32, {shape().input_width, shape().layers, row_.size});
    graph.Add(graph.Copy(weights_->OwnInputs(graph, matmuls, tokens, embedded), own));
  }
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
  Tensor x = graph.At(memory_->Residual(index), GGML_TYPE_F32, {shape().stream_width(), row_.size});
  Activations kept;
  kept.mixed = graph.At(slots.mixed, GGML_TYPE_F32, {layer.mixed_width(), row_.size});
  part.Mix(x, kept);
  kept.middle = part.Middle(kept);
  part.FeedForward(kept);
  if (is_kept) {
    for (size_t i = 0; i < kept.inputs.size(); ++i) graph.Pin(kept.inputs[i], slots.inputs[i]);
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
  for (int64_t i = 0; i < shape().layers; ++i) {
    const AttentionShape& attention = shape().of_layer[static_cast<size_t>(i)].attention;
    if (!attention.is_kv_read) continue;
    const SharedKeys& keys = memory_->shared_keys[static_cast<size_t>(i)];
    for (Slot slot : {keys.key_gradient, keys.value_gradient}) Zero(slot, attention.kv_width() * row_.size);
  }
  int current = 0;
  for (int64_t i = shape().layers - 1; i >= 0; --i, current = 1 - current)
    BackwardLayer(i, memory_->gradients[current], memory_->gradients[1 - current]);
}

void Trainer::BackwardLayer(int64_t index, Slot gradient_slot, Slot input_gradient_slot) {
  const bool is_kept = index < static_cast<int64_t>(memory_->kept.size());
  const ActivationSlots& slots = is_kept ? memory_->kept[static_cast<size_t>(index)] : memory_->scratch;
  const Layer& layer = weights_->layers[static_cast<size_t>(index)];
  const int64_t zeroed = layer.shape.attention.kv_width() * row_.size;
  for (Slot slot : {memory_->layer_scratch.key_gradient, memory_->layer_scratch.value_gradient}) Zero(slot, zeroed);
  Graph graph;
  Linears linears(graph, *device_, adapter_.get(), memory_->gradient_outputs());
  LayerGraph part(graph, linears, *weights_, layer, row_);
  auto at = [&](Slot slot, int64_t rows) { return graph.At(slot, GGML_TYPE_F32, {rows, row_.size}); };
  Tensor x = at(memory_->Residual(index), shape().stream_width());
  Activations kept;
  kept.mixed = at(slots.mixed, layer.mixed_width());
  if (is_kept) {
    const std::vector<const Linear*> inputs = layer.mixer_inputs();
    for (size_t i = 0; i < inputs.size(); ++i) kept.inputs.push_back(at(slots.inputs[i], inputs[i]->out()));
    kept.middle = at(slots.middle, shape().width);
    kept.gate = at(slots.gate, layer.hidden_width(shape()));
    kept.up = at(slots.up, layer.hidden_width(shape()));
  } else {
    part.Mix(x, kept);
    kept.middle = part.Middle(kept);
    part.FeedForward(kept);
  }
  const bool is_first = index == 0;
  Tensor input_gradient =
      part.Backward(x, kept, at(gradient_slot, shape().stream_width()), memory_->layer_scratch, !is_first);
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
