#include "trainer/head.h"

#include <algorithm>
#include <limits>

#include "kernels/head-rows.h"
#include "trainer/streams.h"

namespace onpolicy::training {
namespace {

constexpr int64_t kChunkBytes = 64 << 20;
constexpr int64_t kChunkTargets = 128;

Slot Advance(Slot slot, int64_t values) {
  return {slot.arena, slot.offset + static_cast<size_t>(values) * sizeof(float)};
}

// One chunk of targets within the row.
struct Chunk {
  int64_t start, count, targets;
};

// (vocabulary, chunk) logits -> softmax - onehot, in place. Fused, for the CPU.
Tensor ErrorsOnCpu(Graph& graph, const RowMemory& memory, Chunk chunk, Tensor logits) {
  Tensor stats = graph.At(Advance(memory.head_stats, 2 * chunk.start), GGML_TYPE_F32, {2, chunk.count});
  return graph.Add(graph.Custom(logits, {stats}, SoftMaxRows));
}

// Like ErrorsOnCpu, with functions that every device has. Returns the softmax alone. The logarithm of the sum of
// exponentials is the mean logit plus the entropy.
Tensor ProbabilitiesOnDevice(Graph& graph, const RowMemory& memory, Chunk chunk, Tensor logits) {
  const Tensor flat_ids = graph.At(Advance(memory.flat_targets, chunk.start), GGML_TYPE_I32, {chunk.count});
  Tensor probabilities = graph.SoftMax(logits, nullptr, 1.0f);
  Tensor logs = graph.Log(graph.Clamp(probabilities, 1e-37f, 1.0f));
  Tensor negative_entropy = graph.SumRows(graph.Times(probabilities, logs));
  Tensor mean_logit = graph.SumRows(graph.Times(probabilities, logits));
  Tensor chosen = graph.Rows(graph.Reshape(logits, 1, logits->ne[0] * chunk.count), flat_ids);
  Tensor logprobs = graph.Plus(graph.Minus(chosen, mean_logit), negative_entropy);
  graph.Add(graph.Pin(logprobs, Advance(memory.head_stats, chunk.start)));
  graph.Add(graph.Copy(negative_entropy, graph.At(Advance(memory.head_stats, chunk.targets + chunk.start),
                                                  GGML_TYPE_F32, {1, chunk.count})));
  return probabilities;
}

// Gradients with respect to the head's input, divided by the scale of logits. `moved` is softmax - onehot if fused, otherwise the softmax.
Tensor InputErrors(Graph& graph, Matmuls& matmuls, const Weights& weights, Tensor moved, Tensor slope, bool is_fused,
                   Tensor ids, Tensor flat_ids) {
  // If fused, one matmul computes both halves of the gradient, which nearly cancel for a likely token and round alike.
  Tensor errors = matmuls.Backward(weights.head, slope ? graph.Times(moved, slope) : moved);
  if (is_fused) return errors;
  Tensor chosen = graph.Rows(weights.head.weight, ids);
  if (slope) chosen = graph.Times(chosen, graph.Rows(graph.Reshape(slope, 1, slope->ne[0] * slope->ne[1]), flat_ids));
  return graph.Minus(errors, chosen);
}

}  // namespace

// z = cap tanh(scale y / cap), dz/dy = scale (1 - (z / cap)^2)
Logits BoundLogits(Graph& graph, const Shape& shape, Tensor matmul) {
  if (shape.logit_cap == 0)
    return {shape.logit_scale == 1 ? matmul : graph.Scale(matmul, shape.logit_scale), nullptr};
  Tensor bounded = graph.Tanh(graph.Scale(matmul, shape.logit_scale / shape.logit_cap));
  Tensor slope = graph.Add(graph.Scale(graph.Square(bounded), -1, 1));
  return {graph.Scale(bounded, shape.logit_cap), slope};
}

RowScan ScanLogits(const float* logits, int64_t count) {
  thread_local SamplerScratch scratch;
  return ScanRow({.row = logits, .vocab_size = static_cast<size_t>(count), .log_sum = true}, scratch);
}

void SoftMaxRows(Tensor result, int thread, int threads, void*) {
  const Tensor stats = result->src[1], weights = result->src[2];
  for (int64_t row = thread; row < result->ne[1]; row += threads) {
    auto* logits = reinterpret_cast<float*>(static_cast<char*>(result->data) + row * result->nb[1]);
    char* place = static_cast<char*>(stats->data) + row * stats->nb[1];
    const int32_t target = *reinterpret_cast<int32_t*>(place);
    const RowScan scan = ScanLogits(logits, result->ne[0]);
    const float logprob = scan.has_nan ? std::numeric_limits<float>::quiet_NaN() : scan.Logprob(logits[target]);
    reinterpret_cast<float*>(place)[0] = logprob;
    reinterpret_cast<float*>(place)[1] = SoftMaxRow(logits, result->ne[0], target, scan.max);
    if (!weights) continue;
    const float weight = static_cast<const float*>(weights->data)[row];
    for (int64_t i = 0; i < result->ne[0]; ++i) logits[i] *= weight;
  }
}

int64_t HeadChunk(const Weights& weights) {
  const int64_t fitting = kChunkBytes / (weights.shape.vocabulary * static_cast<int64_t>(sizeof(float)));
  return std::clamp<int64_t>(fitting, 1, kChunkTargets);
}

namespace {

// Scores a chunk of targets, and fills their `head_errors` if the memory is for gradients.
void AddHeadChunk(Graph& graph, const Device& device, const Weights& weights, const RowMemory& memory, int64_t size, const Chunk& range,
                  bool has_temperatures) {
  const Shape& shape = weights.shape;
  Matmuls matmuls(graph, device);
  Tensor stream = graph.At(memory.Residual(shape.layers), GGML_TYPE_F32, {shape.stream_width(), size});
  Tensor rows = graph.Rows(stream, graph.At(Advance(memory.logit_rows, range.start), GGML_TYPE_I32, {range.count}));
  if (shape.streams > 1) rows = MergeStreams(graph, matmuls, weights, rows);
  Tensor normed = graph.Times(Normed(graph, shape, rows), weights.output_norm);
  Tensor logits = matmuls.Forward(weights.head.weight, normed);
  if (weights.head.bias) logits = graph.Plus(logits, weights.head.bias);
  const Logits bounded = BoundLogits(graph, shape, logits);
  const bool is_fused = device.is_cpu();
  Tensor values = bounded.values;
  if (has_temperatures) values = graph.Times(values, graph.At(Advance(memory.coldness, range.start), GGML_TYPE_F32, {1, range.count}));
  Tensor moved = is_fused ? ErrorsOnCpu(graph, memory, range, values) : ProbabilitiesOnDevice(graph, memory, range, values);
  if (!memory.need().gradients) return;
  Tensor ids = graph.At(Advance(memory.target_tokens, range.start), GGML_TYPE_I32, {range.count});
  Tensor flat_ids = graph.At(Advance(memory.flat_targets, range.start), GGML_TYPE_I32, {range.count});
  Tensor errors = InputErrors(graph, matmuls, weights, moved, bounded.slope, is_fused, ids, flat_ids);
  if (shape.logit_scale != 1) errors = graph.Scale(errors, shape.logit_scale);
  graph.Add(graph.Pin(errors, Advance(memory.head_errors, range.start * shape.width)));
}

// Computes the gradient of the last residual stream.
void AddHeadBack(Graph& graph, const Device& device, const Weights& weights, const RowMemory& memory, int64_t size, int64_t targets) {
  const Shape& shape = weights.shape;
  Tensor weight_of_target = graph.At(memory.head_gradient, GGML_TYPE_F32, {1, targets});
  Tensor ids = graph.At(memory.logit_rows, GGML_TYPE_I32, {targets});
  Tensor stream = graph.At(memory.Residual(shape.layers), GGML_TYPE_F32, {shape.stream_width(), size});
  Tensor errors = graph.At(memory.head_errors, GGML_TYPE_F32, {shape.width, targets});
  Tensor normed_gradient = graph.Times(graph.Times(errors, weight_of_target), weights.output_norm);
  Tensor rows = graph.Rows(stream, ids);
  Matmuls matmuls(graph, device);
  Tensor rows_gradient = NormedBack(graph, shape, normed_gradient, shape.streams > 1 ? MergeStreams(graph, matmuls, weights, rows) : rows);
  if (shape.streams > 1) rows_gradient = MergeStreamsBack(graph, matmuls, weights, rows_gradient, rows);
  graph.Add(graph.Pin(graph.ScatterRows(rows_gradient, ids, stream), memory.gradients[0]));
}

}  // namespace

size_t MeasureHead(const Device& device, const Weights& weights, const RowMemory& memory) {
  const RowMemory::Need& need = memory.need();
  Graph forward, back;
  AddHeadChunk(forward, device, weights, memory, need.size, {0, std::min(HeadChunk(weights), need.targets), need.targets}, /*has_temperatures=*/false);
  AddHeadBack(back, device, weights, memory, need.size, need.targets);
  return std::max(device.MeasureScratch(forward), device.MeasureScratch(back));
}

void PutTargets(const Device& device, const Weights& weights, const RowMemory& memory,
                const std::vector<int32_t>& targets) {
  const auto put = [](Slot slot, const std::vector<int32_t>& values) {
    Upload(slot, GGML_TYPE_I32, values.data(), values.size());
  };
  const auto chunk = static_cast<size_t>(HeadChunk(weights));
  std::vector<int32_t> flat(targets.size()), pairs(2 * targets.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    flat[i] = targets[i] + static_cast<int32_t>(static_cast<int64_t>(i % chunk) * weights.shape.vocabulary);
    pairs[2 * i] = targets[i];
  }
  put(memory.target_tokens, targets);
  put(memory.flat_targets, flat);
  // The fused function reads each target from the place of its result.
  if (device.is_cpu()) put(memory.head_stats, pairs);
}

Scores HeadForward(Device* device, const Weights& weights, const RowMemory& memory, int64_t size, int64_t targets, bool has_temperatures) {
  const Library& api = Api();
  const int64_t chunk = HeadChunk(weights);
  for (int64_t start = 0; start < targets; start += chunk) {
    Graph graph;
    AddHeadChunk(graph, *device, weights, memory, size, {start, std::min(chunk, targets - start), targets}, has_temperatures);
    device->Run(graph);
  }
  std::vector<float> stats(static_cast<size_t>(2 * targets));
  Graph graph;
  api.ggml_backend_tensor_get(graph.At(memory.head_stats, GGML_TYPE_F32, {2, targets}), stats.data(), 0,
                              stats.size() * sizeof(float));
  Scores scores;
  for (size_t i = 0; i < stats.size() / 2; ++i) {
    scores.logprobs.push_back(device->is_cpu() ? stats[2 * i] : stats[i]);
    scores.entropies.push_back(device->is_cpu() ? stats[2 * i + 1] : -stats[stats.size() / 2 + i]);
  }
  return scores;
}

void HeadBackward(Device* device, const Weights& weights, const RowMemory& memory, int64_t size, const std::vector<float>& gradient) {
  std::vector<float> negative = gradient;  // the errors are softmax - onehot, the gradient is their negative
  for (float& value : negative) value = -value;
  Upload(memory.head_gradient, GGML_TYPE_F32, negative.data(), negative.size());
  Graph graph;
  AddHeadBack(graph, *device, weights, memory, size, static_cast<int64_t>(gradient.size()));
  device->Run(graph);
}

}  // namespace onpolicy::training
