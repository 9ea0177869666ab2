#include "trainer/adapter.h"

#include <algorithm>

#include "kernels/float-transpose.h"

namespace onpolicy::training {
namespace {

bool IsSelected(const std::string& name, const std::vector<std::string>& modules) {
  const std::string kind = name.substr(name.find('.', name.find('.') + 1) + 1);  // after "blk.0."
  return std::any_of(modules.begin(), modules.end(),
                     [&](const std::string& wanted) { return wanted == kind || wanted == name; });
}

// Of each of `count` matrices.
std::vector<float> Transposed(const std::vector<float>& matrices, int64_t count, int64_t rows, int64_t columns) {
  std::vector<float> result(matrices.size());
  for (int64_t at = 0; at < count * rows * columns; at += rows * columns)
    TransposeFloats(matrices.data() + at, columns, rows, /*is_narrow=*/false, result.data() + at, 0, columns);
  return result;
}

void UploadFloats(Slot slot, const std::vector<float>& values) {
  Upload(slot, GGML_TYPE_F32, values.data(), values.size());
}

}  // namespace

void Parameter::Resize(size_t count) {
  for (std::vector<float>* part : {&value, &gradient, &first_moment, &second_moment}) part->assign(count, 0.0f);
}

std::unique_ptr<Adapter> Adapter::Create(Device* device, Weights* weights, const std::vector<std::string>& modules, int64_t rank,
                                         double alpha, bool is_measured) {
  auto adapter = std::unique_ptr<Adapter>(new Adapter);
  adapter->rank_ = rank;
  adapter->scale_ = static_cast<float>(alpha) / static_cast<float>(rank);
  adapter->arena_ = std::make_unique<Arena>(device);
  for (Layer& layer : weights->layers)
    for (Linear* linear : layer.linears()) {
      const bool has_experts = linear->experts() > 1;
      const bool is_output = linear == &layer.output || linear == &layer.shared_down || (linear == &layer.down && !has_experts);
      if (!IsSelected(linear->name, modules) || (is_output && weights->shape.traits->has_fixed_outputs)) continue;
      if (has_experts && !device->is_cpu())
        throw Failure("UNSUPPORTED", "modules: adapters of experts, as " + linear->name + ", are trained on a CPU: expected gpu: false");
      linear->module = static_cast<int>(adapter->modules_.size());
      Module module;
      module.name = linear->name;
      module.in = linear->in();
      module.out = linear->out();
      module.rank = rank;
      module.experts = linear->experts();
      if (!is_measured) module.a.Resize(module.a_count());
      if (!is_measured) module.b.Resize(module.b_count());
      for (Slot* slot : {&module.a_rows, &module.a_columns})
        *slot = {adapter->arena_.get(), adapter->arena_->Reserve(module.a_count() * sizeof(float))};
      for (Slot* slot : {&module.b_rows, &module.b_columns})
        *slot = {adapter->arena_.get(), adapter->arena_->Reserve(module.b_count() * sizeof(float))};
      adapter->modules_.push_back(std::move(module));
    }
  if (adapter->modules_.empty())
    throw Failure("INVALID_REQUEST", "modules: none of the names is a linear layer of this model");
  if (!is_measured) adapter->arena_->Allocate();
  return adapter;
}

size_t Adapter::bytes() const {
  size_t numbers = 0;
  for (const Module& module : modules_) numbers += module.a_count() + module.b_count();
  return arena_->reserved_bytes() + 4 * numbers * sizeof(float);
}

void Adapter::Upload() {
  for (Module& module : modules_) {
    UploadFloats(module.a_rows, module.a.value);
    UploadFloats(module.a_columns, Transposed(module.a.value, module.experts, rank_, module.in));
    UploadFloats(module.b_rows, module.b.value);
    UploadFloats(module.b_columns, Transposed(module.b.value, module.experts, module.out, rank_));
  }
}

void Adapter::Accumulate(int index, float factor, const float* a_gradient, const float* b_gradient_transposed) {
  Module& module = modules_[static_cast<size_t>(index)];
  for (size_t i = 0; i < module.a.gradient.size(); ++i) module.a.gradient[i] += factor * a_gradient[i];
  for (int64_t e = 0; e < module.experts; ++e)
    for (int64_t o = 0; o < module.out; ++o)
      for (int64_t r = 0; r < rank_; ++r)
        module.b.gradient[static_cast<size_t>((e * module.out + o) * rank_ + r)] +=
            factor * scale_ * b_gradient_transposed[(e * rank_ + r) * module.out + o];
}

void Adapter::ZeroGradients() {
  for (Parameter* parameter : Parameters()) std::fill(parameter->gradient.begin(), parameter->gradient.end(), 0.0f);
}

void Adapter::ResetOptimizer() {
  step_count = 0;
  for (Parameter* parameter : Parameters())
    for (std::vector<float>* moment : {&parameter->first_moment, &parameter->second_moment})
      std::fill(moment->begin(), moment->end(), 0.0f);
}

StepResult Adapter::Step(const OptimizerOptions& options) {
  std::vector<Trained> trained;
  for (Parameter* one : Parameters())
    trained.push_back({one->value.data(), one->gradient.data(), one->first_moment.data(), one->second_moment.data(), one->value.size()});
  const StepResult result = Optimize(options, trained, &step_count);
  ZeroGradients();
  return result;
}

std::vector<Parameter*> Adapter::Parameters() {
  std::vector<Parameter*> parameters;
  for (Module& module : modules_) parameters.insert(parameters.end(), {&module.a, &module.b});
  return parameters;
}

}  // namespace onpolicy::training
