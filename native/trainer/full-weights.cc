#include "trainer/full-weights.h"

#include <algorithm>

#include "kernels/float-transpose.h"

namespace onpolicy::training {
namespace {

// Returns every field with a trained tensor. A field is null if the model has no such tensor.
std::vector<Tensor*> Fields(Weights* weights) {
  std::vector<Tensor*> fields = {&weights->embedding, &weights->output_norm, &weights->head.weight,
                                 &weights->head.bias};
  for (Layer& layer : weights->layers) {
    for (Tensor* norm : layer.norms()) fields.push_back(norm);
    for (Linear* linear : layer.linears()) {
      fields.push_back(&linear->weight);
      fields.push_back(&linear->bias);
    }
  }
  return fields;
}

}  // namespace

std::unique_ptr<FullWeights> FullWeights::Create(Device* device, Weights* weights, bool is_narrow) {
  auto full = std::unique_ptr<FullWeights>(new FullWeights);
  full->device_ = device;
  full->is_narrow_ = is_narrow;
  std::vector<Tensor> sources;
  for (Tensor* field : Fields(weights)) {
    if (!*field || full->places_.contains(*field)) continue;
    full->Add(*weights, *field);
    sources.push_back(*field);
  }
  for (Linear* linear : weights->AllLinears()) full->Own(linear->weight).is_multiplied = true;
  full->Place(device, sources);
  for (Linear* linear : weights->AllLinears()) {
    FullParameter& parameter = full->Own(linear->weight);
    linear->weight = parameter.matmul;
    linear->transposed_type = parameter.transposed->type;
    linear->is_transposed_packed = false;
    linear->transposed = {full->arena_.get(), static_cast<size_t>(static_cast<char*>(parameter.transposed->data) -
                                                                  static_cast<char*>(full->arena_->AddressOf(0)))};
  }
  for (Tensor* field : Fields(weights))
    if (*field && std::find(sources.begin(), sources.end(), *field) != sources.end())
      *field = full->Own(*field).value;
  full->Refresh();
  return full;
}

void FullWeights::Add(const Weights& weights, Tensor from) {
  if (from->type != GGML_TYPE_F32 && from->type != GGML_TYPE_F16 && from->type != GGML_TYPE_BF16)
    throw Failure("UNSUPPORTED", std::string("all weights can be trained when they are F32, F16 or BF16; ") +
                                           from->name + " is " + Api().ggml_type_name(from->type));
  places_[from] = parameters_.size();
  parameters_.push_back({.name = from->name,
                         .stored_type = from->type,
                         .offset_in_file = weights.OffsetInFile(from),
                         .in = from->ne[0],
                         .columns = from->ne[1]});
}

void FullWeights::Place(Device* device, const std::vector<Tensor>& sources) {
  const Library& api = Api();
  const ggml_type matmul_type = is_narrow_ ? GGML_TYPE_BF16 : GGML_TYPE_F32;
  arena_ = std::make_unique<Arena>(device);
  struct Offsets {
    size_t value, gradient, matmul, transposed;
  };
  std::vector<Offsets> offsets;
  for (FullParameter& parameter : parameters_) {
    const size_t bytes = parameter.count() * sizeof(float);
    const size_t matmul_bytes = parameter.is_multiplied ? parameter.count() * api.ggml_type_size(matmul_type) : 0;
    offsets.push_back({arena_->Reserve(bytes), arena_->Reserve(bytes),
                       arena_->Reserve(is_narrow_ ? matmul_bytes : 0), arena_->Reserve(matmul_bytes)});
  }
  arena_->Allocate();
  tensors_ = std::make_unique<Graph>();
  auto at = [&](size_t offset, ggml_type type, int64_t rows, int64_t columns) {
    return tensors_->At({arena_.get(), offset}, type, {rows, columns});
  };
  for (size_t i = 0; i < parameters_.size(); ++i) {
    FullParameter& parameter = parameters_[i];
    parameter.value = at(offsets[i].value, GGML_TYPE_F32, parameter.in, parameter.columns);
    parameter.gradient = at(offsets[i].gradient, GGML_TYPE_F32, parameter.in, parameter.columns);
    parameter.matmul = parameter.value;
    if (parameter.is_multiplied) {
      if (is_narrow_) parameter.matmul = at(offsets[i].matmul, matmul_type, parameter.in, parameter.columns);
      parameter.transposed = at(offsets[i].transposed, matmul_type, parameter.columns, parameter.in);
    }
    places_[parameter.value] = places_[parameter.matmul] = i;
    parameter.first_moment.assign(parameter.count(), 0.0f);
    parameter.second_moment.assign(parameter.count(), 0.0f);
    if (sources[i]->type == GGML_TYPE_F32)
      std::copy_n(static_cast<const float*>(sources[i]->data), parameter.count(), parameter.values());
    else
      api.ggml_get_type_traits(sources[i]->type)
          ->to_float(sources[i]->data, parameter.values(), static_cast<int64_t>(parameter.count()));
  }
  ZeroGradients();
}

const FullParameter* FullWeights::Find(Tensor used) const {
  const auto found = places_.find(used);
  return found == places_.end() ? nullptr : &parameters_[found->second];
}

void FullWeights::Refresh() {
  for (FullParameter& parameter : parameters_) {
    if (!parameter.is_multiplied) continue;
    if (is_narrow_)
      Api().ggml_fp32_to_bf16_row(parameter.values(), static_cast<ggml_bf16_t*>(parameter.matmul->data),
                                  static_cast<int64_t>(parameter.count()));
    TransposeFloats(parameter.values(), parameter.in, parameter.columns, is_narrow_, parameter.transposed->data, 0,
         parameter.in);
  }
}

void FullWeights::ZeroGradients() {
  for (FullParameter& parameter : parameters_) std::fill_n(parameter.gradients(), parameter.count(), 0.0f);
}

StepResult FullWeights::Step(const OptimizerOptions& options) {
  std::vector<Trained> trained;
  for (FullParameter& one : parameters_)
    trained.push_back({one.values(), one.gradients(), one.first_moment.data(), one.second_moment.data(), one.count(), one.columns > 1});
  const StepResult result = device_->OnCores([&](int threads) { return Optimize(options, trained, &step_count, threads); });
  if (result.is_applied) Refresh();
  return result;
}

}  // namespace onpolicy::training
