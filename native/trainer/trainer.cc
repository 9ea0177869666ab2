#include "trainer/trainer.h"

#include <algorithm>
#include <cmath>

#include "base/threads.h"
#include "engine-assumptions/table/assumptions.h"
#include "trainer/streams.h"

namespace onpolicy::training {
namespace {

constexpr int64_t kMaxRow = 32768;
// Minimum number of multiplications in a layer's largest matmul for which several threads are faster than one.
constexpr int64_t kSharedWork = 16 << 20;
// Gradients are scaled by a power of two so that the largest is below 2^kGradientExponent.
constexpr int kGradientExponent = 10;
constexpr size_t kDefaultKeptBytes = size_t{2} << 30;

}  // namespace

std::unique_ptr<Trainer> Trainer::Open(const TrainerOptions& options) {
  Require(Assumed::kTrainingFunctions);
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
  size_t bytes = device_->scratch_bytes() + weights_->transposed_taken() + adapter_->bytes();
  if (memory_) bytes += memory_->bytes();
  return bytes;
}

size_t Trainer::Measure(const TrainerOptions& options, int64_t tokens) {
  Trainer trainer;
  trainer.options_ = options;
  trainer.device_ = Device::Open(options.device, 1);
  trainer.weights_ = Weights::Describe(*trainer.device_, options.model, options.context);
  trainer.adapter_ = Adapter::Create(trainer.device_.get(), trainer.weights_.get(), options.modules, options.rank, options.alpha, /*is_measured=*/true);
  PackedRow row;
  for (int32_t i = 0; i < tokens; ++i) row.positions.push_back(i);
  row.tokens.resize(row.positions.size());
  row.group_ids = row.parent_ids = row.logit_rows = row.target_tokens = row.tokens;
  row.Pad(kRowMultiple);
  return trainer.LeastBytes(row, trainer.PlanRow(row, true));
}

std::vector<std::string> Trainer::ModuleNames(const TrainerOptions& options) {
  const auto device = Device::Open(options.device, 1);
  const auto weights = Weights::Describe(*device, options.model, options.context);
  const auto adapter = Adapter::Create(device.get(), weights.get(), options.modules, options.rank, options.alpha, /*is_measured=*/true);
  std::vector<std::string> names;
  for (const Module& module : adapter->modules()) names.push_back(module.name);
  return names;
}

size_t Trainer::LeastBytes(const PackedRow& row, RowInputs inputs) const {
  const auto memory = RowMemory::Plan(device_.get(), *weights_, GradientBytes(), NeedOf(row, inputs, true));
  Bind(*memory, &inputs);
  size_t scratch = MeasureHead(*device_, *weights_, *memory);
  const auto measure = [&](auto add) {
    Graph graph;
    Linears linears(graph, *device_, adapter_.get(), memory->gradient_outputs());
    add(graph, linears);
    scratch = std::max(scratch, device_->MeasureScratch(graph));
  };
  measure([&](Graph& graph, Linears&) { AddEmbedding(graph, *memory, row.size()); });
  std::vector<const Layer*> measured;
  for (const Layer& layer : weights_->layers) {
    // Measures the second layer of a kind, because the first layer passes no gradient on.
    const auto is_alike = [&](const Layer* other) { return layer.index > 1 && other->index > 0 && other->IsLike(layer); };
    if (std::any_of(measured.begin(), measured.end(), is_alike)) continue;
    measured.push_back(&layer);
    measure([&](Graph& graph, Linears& linears) { AddLayer(graph, linears, *memory, inputs, layer.index); });
    measure([&](Graph& graph, Linears& linears) {
      AddLayerBack(graph, linears, *memory, inputs, layer.index, memory->gradients[0], memory->gradients[1]);
    });
  }
  return adapter_->bytes() + weights_->transposed_bytes() + memory->planned_bytes() + scratch;
}

size_t Trainer::GradientBytes() const {
  size_t bytes = 0;
  for (const Layer& layer : weights_->layers) bytes = std::max(bytes, Linears::GradientBytes(layer, *adapter_));
  return bytes;
}

int64_t Trainer::LayersToKeep(const PackedRow& row) const {
  size_t available = kDefaultKeptBytes;
  if (options_.memory_budget > 0) available = options_.memory_budget - RequireMemory(row, row_);
  int64_t count = 0;
  for (const Layer& layer : weights_->layers) {
    const size_t bytes = RowMemory::KeptBytes(*weights_, layer, row.size());
    if (bytes > available) break;
    available -= bytes;
    ++count;
  }
  return count;
}

size_t Trainer::RequireMemory(const PackedRow& row, const RowInputs& inputs) const {
  const size_t budget = options_.memory_budget, least = LeastBytes(row, inputs);
  if (least <= budget) return least;
  const auto mebibytes = [](size_t bytes) { return std::to_string((bytes >> 20) + 1) + " MiB"; };
  // All memory except the weights grows almost linearly with the row.
  const size_t fixed = weights_->transposed_bytes() + adapter_->bytes();
  const double share = budget > fixed ? static_cast<double>(budget - fixed) / static_cast<double>(least - fixed) : 0;
  const auto fitting = static_cast<int64_t>(share * static_cast<double>(row.size())) / kRowMultiple * kRowMultiple;
  const std::string rows = fitting > 0 ? "about " + std::to_string(fitting) + " tokens fit into" : "no row fits into";
  throw Failure("OUT_OF_MEMORY", "memoryBudget: a row of " + std::to_string(row.size()) + " tokens needs " + mebibytes(least) +
                                     " beside the weights; " + rows + " the " + mebibytes(budget));
}

void Trainer::CheckMemory(PackedRow row) const {
  if (options_.memory_budget == 0) return;
  row.Check(shape());
  row.Pad(kRowMultiple);
  RequireMemory(row, PlanRow(row, true));
}

RowInputs Trainer::PlanRow(const PackedRow& row, bool gradients) const {
  RowInputs inputs;
  inputs.size = row.size();
  inputs.is_routed = !row.experts.empty();
  if (HasFusedAttention(*device_, shape())) inputs.attention.runs = TokenRunsOf(row, shape().window);
  if (shape().is_recurrent()) inputs.states = PlanStates(row);
  // The backward pass consists of matmuls.
  if (gradients || inputs.attention.runs.empty()) inputs.attention.plan = PlanAttention(row, shape().window);
  return inputs;
}

RowMemory::Need Trainer::NeedOf(const PackedRow& row, const RowInputs& inputs, bool gradients) {
  return {.size = row.size(), .targets = row.targets(), .mask_values = inputs.attention.plan.mask_values, .gradients = gradients};
}

void Trainer::Bind(const RowMemory& memory, RowInputs* inputs) {
  inputs->positions = memory.positions;
  inputs->attention.masks = memory.masks;
  inputs->zeros = memory.zeros;
  inputs->own_inputs = memory.own_inputs;
  inputs->experts = memory.experts;
  inputs->shared_keys = memory.shared_keys;
}

void Trainer::PrepareRow(const PackedRow& row, bool gradients) {
  device_->UseThreads(row.size() * shape().width * weights_->layers.back().hidden_width(shape()) >= kSharedWork);
  row_ = PlanRow(row, gradients);
  targets_ = row.targets();
  RowMemory::Need need = NeedOf(row, row_, gradients);
  if (gradients) need.kept_layers = LayersToKeep(row);
  if (!memory_ || !need.FitsInto(memory_->need()))
    memory_ = RowMemory::Create(device_.get(), *weights_, gradients ? GradientBytes() : 0, need, std::move(memory_));
  Bind(*memory_, &row_);
  Upload(memory_->tokens, GGML_TYPE_I32, row.tokens.data(), row.tokens.size());
  const std::vector<int32_t> positions = row.AllPositions();
  Upload(memory_->positions, GGML_TYPE_I32, positions.data(), positions.size());
  if (const auto masks = MasksOf(row, shape().window, row_.attention.plan); !masks.empty())
    Upload(memory_->masks, GGML_TYPE_F16, masks.data(), masks.size());
  Upload(memory_->logit_rows, GGML_TYPE_I32, row.logit_rows.data(), row.logit_rows.size());
  if (const std::vector<float> experts(row.experts.begin(), row.experts.end()); row_.is_routed)
    Upload(memory_->experts, GGML_TYPE_F32, experts.data(), experts.size());
  PutTargets(*device_, *weights_, *memory_, row.target_tokens);
  coldness_.clear();
  for (float temperature : row.temperatures) coldness_.push_back(1 / temperature);
  if (!coldness_.empty()) Upload(memory_->coldness, GGML_TYPE_F32, coldness_.data(), coldness_.size());
}

void Trainer::AddEmbedding(Graph& graph, const RowMemory& memory, int64_t size) const {
  Tensor tokens = graph.At(memory.tokens, GGML_TYPE_I32, {size});
  // The embedding is computed on the CPU for every device.
  Tensor stream = graph.At(memory.Residual(0), GGML_TYPE_F32, {shape().stream_width(), size});
  Tensor embedded = weights_->Embed(graph, tokens);
  Matmuls matmuls(graph, *device_);
  graph.Add(graph.Copy(shape().streams > 1 ? SpreadStreams(graph, matmuls, *weights_, embedded) : embedded, stream));
  if (shape().input_width == 0) return;
  Tensor own = graph.At(memory.own_inputs, GGML_TYPE_F32, {shape().input_width, shape().layers, size});
  graph.Add(graph.Copy(weights_->OwnInputs(graph, matmuls, tokens, embedded), own));
}

Scores Trainer::Forward(PackedRow row, bool gradients, bool adapter_off) {
  is_forward_fresh_ = false;
  row.Check(shape());
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

  Graph graph;
  AddEmbedding(graph, *memory_, row_.size);
  device_->Run(graph);
  for (int64_t i = 0; i < shape().layers; ++i) ForwardLayer(i, adapter_off ? nullptr : adapter_.get());
  Scores scores = HeadForward(device_.get(), *weights_, *memory_, row_.size, targets_, !coldness_.empty());
  is_forward_fresh_ = gradients && !adapter_off;
  return scores;
}

void Trainer::ForwardLayer(int64_t index, const Adapter* adapter) {
  Graph graph;
  Linears linears(graph, *device_, adapter, nullptr);
  AddLayer(graph, linears, *memory_, row_, index);
  device_->Run(graph);
}

void Trainer::AddLayer(Graph& graph, Linears& linears, const RowMemory& memory, const RowInputs& row, int64_t index) const {
  const bool is_kept = index < static_cast<int64_t>(memory.kept.size());
  const ActivationSlots& slots = is_kept ? memory.kept[static_cast<size_t>(index)] : memory.scratch;
  const Layer& layer = weights_->layers[static_cast<size_t>(index)];
  LayerGraph part(graph, linears, *weights_, layer, row);
  Tensor x = graph.At(memory.Residual(index), GGML_TYPE_F32, {shape().stream_width(), row.size});
  Activations kept;
  kept.mixed = graph.At(slots.mixed, GGML_TYPE_F32, {layer.mixed_width(), row.size});
  part.Mix(x, kept);
  kept.middle = part.Middle(kept);
  part.FeedForward(kept);
  if (is_kept) {
    for (size_t i = 0; i < kept.inputs.size(); ++i) graph.Pin(kept.inputs[i], slots.inputs[i]);
    graph.Pin(kept.middle, slots.middle);
    graph.Pin(kept.gate, slots.gate);
    graph.Pin(kept.up, slots.up);
  }
  graph.Add(graph.Pin(part.Output(kept), memory.Residual(index + 1)));
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

void Trainer::BackwardLayers(std::vector<float> gradient) {
  for (size_t i = 0; i < coldness_.size(); ++i) gradient[i] *= coldness_[i];
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
  const Layer& layer = weights_->layers[static_cast<size_t>(index)];
  const int64_t zeroed = layer.shape.attention.kv_width() * row_.size;
  for (Slot slot : {memory_->layer_scratch.key_gradient, memory_->layer_scratch.value_gradient}) Zero(slot, zeroed);
  Graph graph;
  Linears linears(graph, *device_, adapter_.get(), memory_->gradient_outputs(), adapter_.get(), gradient_scale_);
  AddLayerBack(graph, linears, *memory_, row_, index, gradient_slot, input_gradient_slot);
  device_->Run(graph);

  const Library& api = Api();
  std::vector<float> a, b;
  for (const GradientOutput& output : linears.outputs()) {
    a.resize(static_cast<size_t>(api.ggml_nelements(output.a)));
    b.resize(static_cast<size_t>(api.ggml_nelements(output.b_transposed)));
    api.ggml_backend_tensor_get(output.a, a.data(), 0, a.size() * sizeof(float));
    api.ggml_backend_tensor_get(output.b_transposed, b.data(), 0, b.size() * sizeof(float));
    device_->OnCores([&](int threads) {
      OnThreads(threads, [&](int thread) {
        adapter_->AccumulateA(output.module, gradient_scale_, a.data(), {thread, threads});
        adapter_->AccumulateB(output.module, gradient_scale_, b.data(), {thread, threads});
      });
    });
  }
}

void Trainer::AddLayerBack(Graph& graph, Linears& linears, const RowMemory& memory, const RowInputs& row, int64_t index, Slot gradient_slot,
                           Slot input_gradient_slot) const {
  const bool is_kept = index < static_cast<int64_t>(memory.kept.size());
  const ActivationSlots& slots = is_kept ? memory.kept[static_cast<size_t>(index)] : memory.scratch;
  const Layer& layer = weights_->layers[static_cast<size_t>(index)];
  LayerGraph part(graph, linears, *weights_, layer, row);
  auto at = [&](Slot slot, int64_t rows) { return graph.At(slot, GGML_TYPE_F32, {rows, row.size}); };
  Tensor x = at(memory.Residual(index), shape().stream_width());
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
      part.Backward(x, kept, at(gradient_slot, shape().stream_width()), memory.layer_scratch, !is_first);
  if (input_gradient) graph.Add(graph.Pin(input_gradient, input_gradient_slot));
}

StepResult Trainer::Step(const OptimizerOptions& options) {
  AdapterChanged();
  return adapter_->Step(options);
}

}  // namespace onpolicy::training
