#include "trainer/adapter.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/threads.h"
#include "kernels/float-transpose.h"
#include "trainer/graphs/share.h"
#include "trainer/weights/adapter-matmul.h"

namespace onpolicy::training {
namespace {

bool IsSelected(const std::string& name, const std::vector<std::string>& modules) {
  const std::string kind = name.substr(name.find('.', name.find('.') + 1) + 1);  // after "blk.0."
  return std::any_of(modules.begin(), modules.end(),
                     [&](const std::string& wanted) { return wanted == kind || wanted == name; });
}

// Transposes each of `count` matrices.
void Transpose(const std::vector<float>& matrices, int64_t count, int64_t rows, int64_t columns, float* to) {
  for (int64_t at = 0; at < count * rows * columns; at += rows * columns)
    TransposeFloats(matrices.data() + at, columns, rows, /*is_narrow=*/false, to + at, 0, columns);
}

void UploadFloats(Slot slot, const std::vector<float>& values) {
  if (slot.arena) Upload(slot, GGML_TYPE_F32, values.data(), values.size());
}

// Like `Transpose`, into device memory. On the CPU it is written in place.
void UploadTransposed(Slot slot, bool is_cpu, const std::vector<float>& matrices, int64_t count, int64_t rows, int64_t columns) {
  if (!slot.arena) return;
  if (is_cpu) return Transpose(matrices, count, rows, columns, static_cast<float*>(slot.arena->AddressOf(slot.offset)));
  std::vector<float> transposed(matrices.size());
  Transpose(matrices, count, rows, columns, transposed.data());
  UploadFloats(slot, transposed);
}

// sum += factor from. `sum` is (rows, rank); `from` is transposed, with lines `stride` apart.
void AddTransposed(float* sum, const float* from, int64_t rows, int64_t stride, int64_t rank, float factor) {
  constexpr int64_t kRows = 64, kRanks = 16;  // numbers of a tile, which stays in the nearest cache
  for (int64_t o0 = 0; o0 < rows; o0 += kRows)
    for (int64_t r0 = 0; r0 < rank; r0 += kRanks)
      for (int64_t o = o0; o < std::min(rows, o0 + kRows); ++o)
        for (int64_t r = r0; r < std::min(rank, r0 + kRanks); ++r) sum[o * rank + r] += factor * from[r * stride + o];
}

// Returns the columns or rows [first, second) of a thread's part of `count`.
std::pair<int64_t, int64_t> RangeOf(int64_t count, Adapter::Part part) {
  return {count * part.thread / part.threads, count * (part.thread + 1) / part.threads};
}

}  // namespace

void Parameter::Resize(size_t count) {
  for (std::vector<float>* part : {&value, &gradient, &first_moment, &second_moment}) part->assign(count, 0.0f);
}

std::unique_ptr<Adapter> Adapter::Create(Device* device, Weights* weights, const std::vector<std::string>& modules, int64_t rank,
                                         double alpha, bool is_measured) {
  auto adapter = std::unique_ptr<Adapter>(new Adapter);
  adapter->device_ = device;
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
      const auto reserve = [&](size_t count) { return Slot{adapter->arena_.get(), adapter->arena_->Reserve(count * sizeof(float))}; };
      const bool needs_all = !device->is_cpu() || has_experts;
      module.a_rows = reserve(module.a_count());
      module.b_columns = reserve(module.b_count());
      if (needs_all) module.a_columns = reserve(module.a_count());
      if (needs_all || !HasAdapterKernels(module.in, module.out)) module.b_rows = reserve(module.b_count());
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
  const bool is_cpu = device_->is_cpu();
  const auto upload = [&](const Module& module) {
    UploadFloats(module.a_rows, module.a.value);
    UploadTransposed(module.a_columns, is_cpu, module.a.value, module.experts, rank_, module.in);
    UploadFloats(module.b_rows, module.b.value);
    UploadTransposed(module.b_columns, is_cpu, module.b.value, module.experts, module.out, rank_);
  };
  std::atomic<int64_t> next{0};
  device_->OnCores([&](int threads) {
    OnThreads(is_cpu ? threads : 1, [&](int) {
      Share(next, static_cast<int64_t>(modules_.size()), [&](int64_t i) { upload(modules_[static_cast<size_t>(i)]); });
    });
  });
}

void Adapter::AccumulateA(int index, float factor, const float* gradient, Part part) {
  std::vector<float>& sum = modules_[static_cast<size_t>(index)].a.gradient;
  const auto [first, last] = RangeOf(static_cast<int64_t>(sum.size()), part);
  for (int64_t i = first; i < last; ++i) sum[static_cast<size_t>(i)] += factor * gradient[i];
}

void Adapter::AccumulateB(int index, float factor, const float* gradient_transposed, Part part) {
  Module& module = modules_[static_cast<size_t>(index)];
  const int64_t out = module.out;
  const auto [first, last] = RangeOf(module.experts * out, part);
  for (int64_t i = first; i < last;) {  // of one expert at a time
    const int64_t end = std::min(last, (i / out + 1) * out);
    const float* from = gradient_transposed + i / out * rank_ * out + i % out;
    AddTransposed(module.b.gradient.data() + i * rank_, from, end - i, out, rank_, factor * scale_);
    i = end;
  }
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
  return device_->OnCores([&](int threads) { return Optimize(options, trained, &step_count, threads); });
}

std::vector<Parameter*> Adapter::Parameters() {
  std::vector<Parameter*> parameters;
  for (Module& module : modules_) parameters.insert(parameters.end(), {&module.a, &module.b});
  return parameters;
}

}  // namespace onpolicy::training
