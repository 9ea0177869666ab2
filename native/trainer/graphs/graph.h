// ggml's functions without the context argument, so that layer code reads as formulas; and one graph under construction.
#pragma once
#include <array>
#include <atomic>
#include <deque>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/threads.h"
#include "engine-assumptions/library.h"
#include "trainer/graphs/device.h"

namespace onpolicy::training {

using Tensor = ggml_tensor*;

// Returns the tensor of a context with this name, or null.
Tensor TensorNamed(ggml_context* tensors, const std::string& name);

// Returns the type that ggml calls `name`, or GGML_TYPE_COUNT if there is none.
ggml_type TypeNamed(const std::string& name);

// Tensors with the numbers of others in another shape, order or selection.
class TensorViews {
 public:
  Tensor Rows(Tensor table, Tensor ids) { return api_.ggml_get_rows(context(), table, ids); }
  // Adds rows of `gradient` into a zero tensor shaped like `like`, at `ids`.
  Tensor ScatterRows(Tensor gradient, Tensor ids, Tensor like) {
    return api_.ggml_get_rows_back(context(), gradient, ids, like);
  }
  Tensor Contiguous(Tensor x) { return api_.ggml_cont(context(), x); }
  Tensor Transpose(Tensor x) { return api_.ggml_transpose(context(), x); }
  Tensor Permute(Tensor x, int a, int b, int c, int d) { return api_.ggml_permute(context(), x, a, b, c, d); }
  Tensor Reshape(Tensor x, int64_t a, int64_t b) { return api_.ggml_reshape_2d(context(), x, a, b); }
  Tensor Reshape(Tensor x, int64_t a, int64_t b, int64_t c) {
    return api_.ggml_reshape_3d(context(), x, a, b, c);
  }
  Tensor Copy(Tensor from, Tensor to) { return api_.ggml_cpy(context(), from, to); }
  Tensor Converted(Tensor x, ggml_type type) {
    return Copy(x, api_.ggml_new_tensor(context(), type, GGML_MAX_DIMS, x->ne));
  }
  Tensor Concat(Tensor a, Tensor b, int dimension) { return api_.ggml_concat(context(), a, b, dimension); }
  // Indices [start, start + count) of dimension `dimension` of a three-dimensional tensor.
  Tensor Slice(Tensor x, int dimension, int64_t start, int64_t count);
  // Returns `columns` columns of `rows` numbers of x from number `first` on, regardless of its shape.
  Tensor Numbers(Tensor x, int64_t first, int64_t rows, int64_t columns) {
    const auto size = sizeof(float);
    return api_.ggml_view_2d(context(), x, rows, columns, static_cast<size_t>(rows) * size, static_cast<size_t>(first) * size);
  }
  // Index `index` of the second of three dimensions: a matrix.
  Tensor Part(Tensor x, int64_t index);

  // Returns a context with room for the tensors of one call of a ggml function.
  ggml_context* context();
  const Library& api() const { return api_; }

 protected:
  TensorViews() : api_(Api()) {}
  ~TensorViews() {
    for (ggml_context* context : contexts_) api_.ggml_free(context);
  }
  TensorViews(const TensorViews&) = delete;
  TensorViews& operator=(const TensorViews&) = delete;

  const Library& api_;

 private:
  std::vector<ggml_context*> contexts_;  // the last one has room
  size_t functions_ = 0;                 // number of calls of `context`
};

// Tensors that are computed.
class TensorFormulas : public TensorViews {
 public:
  using TensorViews::TensorViews;

  // Sums in 32 bits. Backends of GPUs would otherwise use 16 bits for 16-bit weights.
  Tensor MulMat(Tensor a, Tensor b) {
    Tensor matmul = api_.ggml_mul_mat(context(), a, b);
    if (api_.set_matmul_precision) api_.set_matmul_precision(matmul, GGML_PREC_F32);
    return matmul;
  }
  // a: (size, outputs, n); b: (size, 1 or used, columns); ids: (used, columns) indices of a's n matrices -> (outputs, used, columns)
  Tensor MulMatOf(Tensor a, Tensor b, Tensor ids) { return api_.ggml_mul_mat_id(context(), a, b, ids); }
  // x: (size, used, columns); b: (size, n); adds to each column of x the column of b given by `ids`, (used, columns).
  Tensor PlusOf(Tensor x, Tensor b, Tensor ids) { return api_.ggml_add_id(context(), x, b, ids); }
  // (size, columns) -> (count, columns) int32, indices of the largest numbers, the first index first among equals
  Tensor TopK(Tensor x, int64_t count) { return api_.ggml_argsort_top_k(context(), x, static_cast<int>(count)); }
  Tensor OutProd(Tensor a, Tensor b) { return api_.ggml_out_prod(context(), a, b); }
  Tensor Plus(Tensor a, Tensor b) { return api_.ggml_add(context(), a, b); }
  Tensor PlusInPlace(Tensor a, Tensor b) { return api_.ggml_add_inplace(context(), a, b); }
  Tensor Minus(Tensor a, Tensor b) { return api_.ggml_sub(context(), a, b); }
  Tensor Times(Tensor a, Tensor b) { return api_.ggml_mul(context(), a, b); }
  Tensor Over(Tensor a, Tensor b) { return api_.ggml_div(context(), a, b); }
  Tensor Norm(Tensor x, float epsilon) { return api_.ggml_norm(context(), x, epsilon); }
  Tensor RmsNorm(Tensor x, float epsilon) { return api_.ggml_rms_norm(context(), x, epsilon); }
  // (gradient of the norm's output, its input) -> gradient of its input
  Tensor RmsNormBack(Tensor gradient, Tensor x, float epsilon) {
    return api_.ggml_rms_norm_back(context(), gradient, x, epsilon);
  }
  Tensor Relu(Tensor x) { return api_.ggml_relu(context(), x); }
  Tensor Gelu(Tensor x) { return api_.ggml_gelu(context(), x); }
  Tensor Silu(Tensor x) { return api_.ggml_silu(context(), x); }
  Tensor SiluBack(Tensor gradient, Tensor x) { return api_.ggml_silu_back(context(), gradient, x); }
  Tensor Sigmoid(Tensor x) { return api_.ggml_sigmoid(context(), x); }
  Tensor SoftPlus(Tensor x) { return api_.ggml_softplus(context(), x); }
  // Divides by the length, which is at least `epsilon`.
  Tensor L2Norm(Tensor x, float epsilon) { return api_.ggml_l2_norm(context(), x, epsilon); }
  // query, key: (size, key heads, tokens); value: (size, heads, tokens); decay, beta: (heads, tokens); state: (size, size, heads).
  // -> output, (size, heads, tokens), followed by the state after the tokens
  Tensor GatedDeltaNet(Tensor query, Tensor key, Tensor value, Tensor decay, Tensor beta, Tensor state) {
    const auto flat = [&](Tensor x) { return Reshape(x, 1, x->ne[0], x->ne[1]); };
    return api_.ggml_gated_delta_net(context(), query, key, value, flat(decay), flat(beta), state, /*K=*/1);
  }
  Tensor Tanh(Tensor x) { return api_.ggml_tanh(context(), x); }
  Tensor Square(Tensor x) { return api_.ggml_sqr(context(), x); }
  // factor x + offset
  Tensor Scale(Tensor x, float factor, float offset = 0) { return api_.ggml_scale_bias(context(), x, factor, offset); }
  Tensor GeGlu(Tensor gate, Tensor up) { return api_.ggml_geglu_split(context(), gate, up); }
  // x s(alpha x) (y + 1), where s is the logistic function, x the gate clamped to at most `limit`, and y `up` clamped to [-limit, limit].
  Tensor SwiGluClamped(Tensor gate, Tensor up, float alpha, float limit) {
    return api_.ggml_swiglu_oai(context(), gate, up, alpha, limit);
  }
  Tensor SwiGlu(Tensor gate, Tensor up) { return api_.ggml_swiglu_split(context(), gate, up); }
  // `sinks`: (heads) a further number of each matrix of x, which is part of the sum, or null.
  Tensor SoftMax(Tensor x, Tensor mask, float scale, Tensor sinks = nullptr) {
    Tensor probabilities = api_.ggml_soft_max_ext(context(), x, mask, scale, 0.0f);
    if (sinks) api_.ggml_soft_max_add_sinks(probabilities, sinks);
    return probabilities;
  }
  Tensor SoftMaxBack(Tensor gradient, Tensor probabilities, float scale) {
    return api_.ggml_soft_max_ext_back(context(), gradient, probabilities, scale, 0.0f);
  }
  Tensor Log(Tensor x) { return api_.ggml_log(context(), x); }
  // Works in place.
  Tensor Clamp(Tensor x, float low, float high) { return api_.ggml_clamp(context(), x, low, high); }
  // 1 where x > 0, else 0
  Tensor Step(Tensor x) { return api_.ggml_step(context(), x); }
  Tensor SumRows(Tensor x) { return api_.ggml_sum_rows(context(), x); }
};

// One graph under construction, which may have any number of tensors.
class Graph : public TensorFormulas {
 public:
  Graph() = default;
  ~Graph();

  // Adds `tensor` and all that it depends on. They run after those added before.
  Tensor Add(Tensor tensor);
  // Number of added tensors, including those they depend on.
  size_t size() const;
  // Returns the graph of the added tensors. No more can be added afterwards.
  ggml_cgraph* get();

  // Returns a tensor whose data is in `slot`.
  Tensor At(Slot slot, ggml_type type, std::initializer_list<int64_t> shape);
  // Makes a tensor that is not computed yet write to `slot`. An in-place function writes to its operand.
  Tensor Pin(Tensor tensor, Slot slot);

  // Runs `run` on `x` in place, on the CPU only. The inputs are src[1] and further; `data` is passed on.
  Tensor Custom(Tensor x, std::initializer_list<Tensor> inputs, ggml_custom_op_t run, void* data = nullptr) {
    return api_.ggml_custom_inplace(context(), x, const_cast<Tensor*>(inputs.begin()),
                                    static_cast<int>(inputs.size()), RunKept, GGML_N_TASKS_MAX, Keep(CustomNode{run, data, &failure_}));
  }
  // Returns a new tensor that `run` fills, on the CPU only. The inputs are src[0] and further.
  Tensor Custom(std::array<int64_t, 3> shape, std::initializer_list<Tensor> inputs, ggml_custom_op_t run,
                void* data = nullptr) {
    return api_.ggml_custom_4d(context(), GGML_TYPE_F32, shape[0], shape[1], shape[2], 1,
                               const_cast<Tensor*>(inputs.begin()), static_cast<int>(inputs.size()), RunKept,
                               GGML_N_TASKS_MAX, Keep(CustomNode{run, data, &failure_}));
  }
  // Rethrows an exception that a function threw on the engine's threads. Called after the graph has run.
  void RethrowFailure() { failure_.Rethrow(); }
  // Returns a counter, 0 before the graph runs, from which the threads of one function take their next piece of work.
  std::atomic<int64_t>* Counter() { return &counters_.emplace_back(0); }
  // Keeps a value that lives as long as the graph.
  template <typename T>
  T* Keep(T value) {
    auto kept = std::make_shared<T>(std::move(value));
    kept_.push_back(kept);
    return kept.get();
  }

 private:
  struct CustomNode {
    ggml_custom_op_t run;
    void* data;
    ThreadFailure* failure;
  };
  static void RunKept(Tensor tensor, int thread, int threads, void* data) {
    const auto& node = *static_cast<const CustomNode*>(data);
    node.failure->Keep([&] { node.run(tensor, thread, threads, node.data); });
  }

  std::vector<Tensor> added_;
  ggml_context* graph_context_ = nullptr;
  ggml_cgraph* graph_ = nullptr;
  size_t size_ = 0;  // of graph_
  ThreadFailure failure_;
  std::deque<std::atomic<int64_t>> counters_;
  std::vector<std::shared_ptr<void>> kept_;
};

// Sets `count` numbers in `slot` to 0.
void Zero(Slot slot, int64_t count);

// Copies `count` numbers of `type` into `slot`.
void Upload(Slot slot, ggml_type type, const void* values, size_t count);

}  // namespace onpolicy::training
