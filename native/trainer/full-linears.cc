#include "trainer/full-linears.h"

#include "base/target.h"
#include "kernels/float-transpose.h"

namespace onpolicy::training {
namespace {

// Fills (row, size); src[0]: (size, row).
void TransposeShare(Tensor out, int thread, int threads, void*) {
  const int64_t size = out->ne[1];
  TransposeFloats(static_cast<const float*>(out->src[0]->data), size, out->ne[0], out->type == GGML_TYPE_BF16, out->data,
       size * thread / threads, size * (thread + 1) / threads);
}

ONPOLICY_BEST_TARGET void AddProducts(float* __restrict sum, const float* __restrict a, const float* __restrict b,
                                      int64_t count) {
  for (int64_t i = 0; i < count; ++i) sum[i] += a[i] * b[i];
}

ONPOLICY_BEST_TARGET void AddAll(float* __restrict sum, const float* __restrict a, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sum[i] += a[i];
}

// Works in place on (size): adds the columns of src[1], each multiplied by the column of src[2] if given; (size, any number).
void AddColumns(Tensor sum, int thread, int threads, void*) {
  const int64_t size = sum->ne[0];
  const int64_t first = size * thread / threads, count = size * (thread + 1) / threads - first;
  const Tensor gradient = sum->src[1], factor = sum->src[2];
  const int64_t columns = gradient->ne[1] * gradient->ne[2] * gradient->ne[3];
  float* to = static_cast<float*>(sum->data) + first;
  for (int64_t column = 0; column < columns; ++column) {
    const int64_t at = column * size + first;
    const float* g = static_cast<const float*>(gradient->data) + at;
    if (factor)
      AddProducts(to, g, static_cast<const float*>(factor->data) + at, count);
    else
      AddAll(to, g, count);
  }
}

}  // namespace

Tensor FullLinears::Transposed(Tensor x, bool is_narrow) {
  const ggml_type type = is_narrow ? GGML_TYPE_BF16 : GGML_TYPE_F32;
  return graph_.api().ggml_custom_4d(graph_.context(), type, x->ne[1], x->ne[0], 1, 1, &x, 1, TransposeShare,
                                     GGML_N_TASKS_MAX, nullptr);
}

Tensor FullLinears::Backward(const Linear& linear, Tensor x, Tensor gradient, bool needs_input_gradient) {
  Tensor& transposed = transposed_inputs_[x];
  if (!transposed) transposed = Transposed(x, weights_.is_narrow());
  graph_.Add(graph_.PlusInPlace(weights_.Find(linear.weight)->gradient,
                                graph_.MulMat(transposed, Transposed(gradient, false))));
  if (linear.bias)
    graph_.Add(graph_.Custom(weights_.Find(linear.bias)->gradient, {gradient}, AddColumns));
  return Linears::Backward(linear, x, gradient, needs_input_gradient);
}

void FullLinears::NormBackward(Tensor weight, Tensor gradient, Tensor x) {
  Tensor normed = graph_.RmsNorm(x, norm_epsilon_);
  graph_.Add(graph_.Custom(weights_.Find(weight)->gradient, {gradient, normed}, AddColumns));
}

}  // namespace onpolicy::training
