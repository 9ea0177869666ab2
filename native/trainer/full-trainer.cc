#include "trainer/full-trainer.h"

#include <algorithm>
#include <string>

#include "engine-assumptions/table/assumptions.h"
#include "trainer/head.h"

namespace onpolicy::training {
namespace {

constexpr int64_t kMaxFullRow = 8192;
constexpr size_t kMaxGraphSize = 65536;  // tensors of the graph of all layers: each takes 21 KB of address space

Failure TooLong(const PackedRow& row) {
  return Failure("INVALID_REQUEST", "tokens: a row of " + std::to_string(row.size()) + " is too long to train all weights of this model");
}

}  // namespace

std::unique_ptr<FullTrainer> FullTrainer::Open(const FullTrainerOptions& options) {
  Require(Assumed::kTrainingFunctions);
  auto trainer = std::unique_ptr<FullTrainer>(new FullTrainer);
  trainer->device_ = Device::Open("", options.threads);
  Device* device = trainer->device_.get();
  trainer->arena_ = std::make_unique<Arena>(device);
  trainer->weights_ = Weights::Load(device, options.model, options.context);
  if (trainer->shape().experts > 0)
    throw Failure("UNSUPPORTED", "all weights of a model with experts cannot be trained; an adapter can");
  if (trainer->shape().is_recurrent())
    throw Failure("UNSUPPORTED", "all weights of a model with recurrent layers cannot be trained; an adapter can");
  if (trainer->shape().of_layer[0].attention.are_values_normed)
    throw Failure("UNSUPPORTED", "all weights of a model of the architecture " + trainer->shape().architecture +
                                     " cannot be trained; an adapter can");
  if (trainer->shape().traits->is_norm_centered)
    throw Failure("UNSUPPORTED", "all weights of a model whose norms take the mean away cannot be trained; an adapter can");
  trainer->weights_->shape.MakeExact();
  trainer->full_ = FullWeights::Create(device, trainer->weights_.get(), options.is_narrow);
  return trainer;
}

std::vector<float> FullTrainer::AddGradients(const PackedRow& row, const std::vector<float>& target_weights) {
  if (static_cast<int64_t>(target_weights.size()) != row.targets())
    throw Failure("INVALID_REQUEST", "targetWeights: expected " + std::to_string(row.targets()) + " entries, got " +
                                         std::to_string(target_weights.size()));
  return Run(row, &target_weights);
}

std::vector<float> FullTrainer::Run(PackedRow row, const std::vector<float>* target_weights) {
  row.Check(shape());
  if (!row.temperatures.empty()) throw Failure("INVALID_REQUEST", "temperatures: expected none, as all weights are trained with cross-entropy");
  const auto targets = static_cast<size_t>(row.targets());
  row.Pad(kRowMultiple);
  std::vector<float> weights = target_weights ? *target_weights : std::vector<float>(targets, 0.0f);
  while (row.targets() == 0 || row.targets() % kRowMultiple != 0) {  // targets with weight 0
    row.logit_rows.push_back(0);
    row.target_tokens.push_back(0);
    weights.push_back(0);
  }
  row_.size = row.size();
  row_.attention.plan = PlanAttention(row, shape().window, kShortBlockQueries);
  if (row.size() > kMaxFullRow) throw TooLong(row);
  Prepare(row, weights);
  Graph graph;
  FullLinears linears(graph, *device_, *full_, shape().norm_epsilon);
  Build(graph, linears, row, target_weights != nullptr);
  if (graph.size() > kMaxGraphSize) throw TooLong(row);
  device_->Run(graph);
  std::vector<float> stats(static_cast<size_t>(2 * row.targets()));
  Graph reader;
  Api().ggml_backend_tensor_get(reader.At(stats_, GGML_TYPE_F32, {2, row.targets()}), stats.data(), 0,
                                stats.size() * sizeof(float));
  std::vector<float> logprobs(targets);
  for (size_t i = 0; i < targets; ++i) logprobs[i] = stats[2 * i];
  return logprobs;
}

void FullTrainer::Prepare(const PackedRow& row, const std::vector<float>& target_weights) {
  arena_->Clear();
  auto reserve = [this](int64_t rows, int64_t columns) {
    return Slot{arena_.get(), arena_->Reserve(static_cast<size_t>(rows * columns) * sizeof(float))};
  };
  const std::vector<uint16_t> masks = MasksOf(row, shape().window, row_.attention.plan);
  tokens_ = reserve(1, row.size());
  row_.positions = reserve(kPositions, row.size());
  row_.attention.masks = reserve(1, static_cast<int64_t>(masks.size() + 1) / 2);
  logit_rows_ = reserve(1, row.targets());
  stats_ = reserve(2, row.targets());
  target_weights_ = reserve(1, row.targets());
  const int64_t query = shape().of_layer[0].attention.query_width(), kv = shape().of_layer[0].attention.kv_width();
  layers_.clear();
  for (int64_t i = 0; i < shape().layers; ++i)
    layers_.push_back({reserve(query, row.size()),
                       {reserve(query, row.size()), reserve(kv, row.size()), reserve(kv, row.size())}});
  arena_->Allocate();
  for (const LayerSlots& slots : layers_)
    for (Slot slot : {slots.scratch.key_gradient, slots.scratch.value_gradient})
      std::fill_n(static_cast<float*>(arena_->AddressOf(slot.offset)), kv * row.size(), 0.0f);
  Upload(tokens_, GGML_TYPE_I32, row.tokens.data(), row.tokens.size());
  const std::vector<int32_t> positions = row.AllPositions();
  Upload(row_.positions, GGML_TYPE_I32, positions.data(), positions.size());
  Upload(row_.attention.masks, GGML_TYPE_F16, masks.data(), masks.size());
  Upload(logit_rows_, GGML_TYPE_I32, row.logit_rows.data(), row.logit_rows.size());
  std::vector<int32_t> pairs(2 * row.target_tokens.size());
  for (size_t i = 0; i < row.target_tokens.size(); ++i) pairs[2 * i] = row.target_tokens[i];
  Upload(stats_, GGML_TYPE_I32, pairs.data(), pairs.size());
  Upload(target_weights_, GGML_TYPE_F32, target_weights.data(), target_weights.size());
}

void FullTrainer::Build(Graph& graph, FullLinears& linears, const PackedRow& row, bool gradients) {
  const Shape& shape = weights_->shape;
  Tensor tokens = graph.At(tokens_, GGML_TYPE_I32, {row.size()});
  Tensor stream = weights_->Embed(graph, tokens);
  std::vector<LayerGraph> parts;
  std::vector<Activations> kept(weights_->layers.size());
  std::vector<Tensor> inputs;  // of each layer
  for (size_t i = 0; i < weights_->layers.size(); ++i) {
    const Layer& layer = weights_->layers[i];
    parts.emplace_back(graph, linears, *weights_, layer, row_);
    inputs.push_back(stream);
    kept[i].mixed = graph.At(layers_[i].mixed, GGML_TYPE_F32, {layer.mixed_width(), row.size()});
    parts[i].Mix(stream, kept[i]);
    kept[i].middle = parts[i].Middle(kept[i]);
    parts[i].FeedForward(kept[i]);
    stream = graph.Add(parts[i].Output(kept[i]));
  }

  Tensor ids = graph.At(logit_rows_, GGML_TYPE_I32, {row.targets()});
  Tensor rows = graph.Rows(stream, ids);
  Tensor normed = graph.Times(graph.RmsNorm(rows, shape.norm_epsilon), weights_->output_norm);
  const Logits logits = BoundLogits(graph, shape, linears.Forward(weights_->head, normed));
  Tensor errors = graph.Add(graph.Custom(logits.values,
                                         {graph.At(stats_, GGML_TYPE_F32, {2, row.targets()}),
                                          graph.At(target_weights_, GGML_TYPE_F32, {row.targets()})},
                                         SoftMaxRows));
  if (!gradients) return;
  if (logits.slope) errors = graph.Times(errors, logits.slope);
  if (shape.logit_scale != 1) errors = graph.Scale(errors, shape.logit_scale);
  Tensor normed_gradient = linears.Backward(weights_->head, normed, errors);
  linears.NormBackward(weights_->output_norm, normed_gradient, rows);
  Tensor rows_gradient =
      graph.RmsNormBack(graph.Times(normed_gradient, weights_->output_norm), rows, shape.norm_epsilon);
  Tensor gradient = graph.ScatterRows(rows_gradient, ids, stream);
  for (size_t i = weights_->layers.size(); i-- > 0;)
    gradient = parts[i].Backward(inputs[i], kept[i], gradient, layers_[i].scratch, true);
  if (shape.embedding_scale != 1) gradient = graph.Scale(gradient, shape.embedding_scale);
  graph.Add(graph.PlusInPlace(full_->Find(weights_->embedding)->gradient,
                              graph.ScatterRows(gradient, tokens, weights_->embedding)));
}

}  // namespace onpolicy::training
