// ggml's functions with the context left out, so that layer code reads as formulas; and one graph under construction.
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
#include "graphs/device.h"
#include "llama/library.h"

namespace onpolicy::training {

constexpr size_t kMaxGraphNodes = 16384;

using Tensor = ggml_tensor*;

// The tensor of a context with this name; null: none.
Tensor TensorNamed(ggml_context* tensors, const std::string& name);

// The type that ggml calls `name`; GGML_TYPE_COUNT: none.
ggml_type TypeNamed(const std::string& name);

// Tensors that hold the numbers of others in another shape, order or selection.
class TensorViews {
 public:
  Tensor Rows(Tensor table, Tensor ids) { return api_.ggml_get_rows(context_, table, ids); }
  // Adds rows of `gradient` into a zero tensor shaped like `like`, at `ids`.
  Tensor ScatterRows(Tensor gradient, Tensor ids, Tensor like) {
    return api_.ggml_get_rows_back(context_, gradient, ids, like);
  }
  Tensor Contiguous(Tensor x) { return api_.ggml_cont(context_, x); }
  Tensor Transpose(Tensor x) { return api_.ggml_transpose(context_, x); }
  Tensor Permute(Tensor x, int a, int b, int c, int d) { return api_.ggml_permute(context_, x, a, b, c, d); }
  Tensor Reshape(Tensor x, int64_t a, int64_t b) { return api_.ggml_reshape_2d(context_, x, a, b); }
  Tensor Reshape(Tensor x, int64_t a, int64_t b, int64_t c) {
    return api_.ggml_reshape_3d(context_, x, a, b, c);
  }
  Tensor Copy(Tensor from, Tensor to) { return api_.ggml_cpy(context_, from, to); }
  Tensor Converted(Tensor x, ggml_type type) {
    return Copy(x, api_.ggml_new_tensor(context_, type, GGML_MAX_DIMS, x->ne));
  }
  Tensor Concat(Tensor a, Tensor b, int dimension) { return api_.ggml_concat(context_, a, b, dimension); }
  // Indices [start, start + count) of dimension `dimension` of a three-dimensional tensor.
  Tensor Slice(Tensor x, int dimension, int64_t start, int64_t count);
  // `columns` columns of `rows` numbers, of those of x that begin at `first`, whatever its shape.
  Tensor Numbers(Tensor x, int64_t first, int64_t rows, int64_t columns) {
    const auto size = sizeof(float);
    return api_.ggml_view_2d(context_, x, rows, columns, static_cast<size_t>(rows) * size, static_cast<size_t>(first) * size);
  }
  // Index `index` of the second of three dimensions: a matrix.
  Tensor Part(Tensor x, int64_t index);

  ggml_context* context() { return context_; }
  const Library& api() const { return api_; }

 protected:
  explicit TensorViews(size_t memory)
      : api_(Api()), context_(api_.ggml_init({.mem_size = memory, .mem_buffer = nullptr, .no_alloc = true})) {}
  ~TensorViews() { api_.ggml_free(context_); }
  TensorViews(const TensorViews&) = delete;
  TensorViews& operator=(const TensorViews&) = delete;

  const Library& api_;
  ggml_context* context_;
};

// Tensors that are computed.
class TensorFormulas : public TensorViews {
 public:
  using TensorViews::TensorViews;

  // Sums in 32 bits: backends of GPUs would take 16 for weights that have no more.
  Tensor MulMat(Tensor a, Tensor b) {
    Tensor matmul = api_.ggml_mul_mat(context_, a, b);
    api_.ggml_mul_mat_set_prec(matmul, GGML_PREC_F32);
    return matmul;
  }
  // a: (size, outputs, n); b: (size, 1 or used, columns); ids: (used, columns), which of a's n -> (outputs, used, columns)
  Tensor MulMatOf(Tensor a, Tensor b, Tensor ids) { return api_.ggml_mul_mat_id(context_, a, b, ids); }
  // x: (size, used, columns); b: (size, n); adds for each its column `ids`, (used, columns).
  Tensor PlusOf(Tensor x, Tensor b, Tensor ids) { return api_.ggml_add_id(context_, x, b, ids); }
  // (size, columns) -> (count, columns) int32, places of the largest, the first of them first
  Tensor TopK(Tensor x, int64_t count) { return api_.ggml_argsort_top_k(context_, x, static_cast<int>(count)); }
  Tensor OutProd(Tensor a, Tensor b) { return api_.ggml_out_prod(context_, a, b); }
  Tensor Plus(Tensor a, Tensor b) { return api_.ggml_add(context_, a, b); }
  Tensor PlusInPlace(Tensor a, Tensor b) { return api_.ggml_add_inplace(context_, a, b); }
  Tensor Minus(Tensor a, Tensor b) { return api_.ggml_sub(context_, a, b); }
  Tensor Times(Tensor a, Tensor b) { return api_.ggml_mul(context_, a, b); }
  Tensor Over(Tensor a, Tensor b) { return api_.ggml_div(context_, a, b); }
  Tensor Norm(Tensor x, float epsilon) { return api_.ggml_norm(context_, x, epsilon); }
  Tensor RmsNorm(Tensor x, float epsilon) { return api_.ggml_rms_norm(context_, x, epsilon); }
  // (gradient of the norm's output, its input) -> gradient of its input
  Tensor RmsNormBack(Tensor gradient, Tensor x, float epsilon) {
    return api_.ggml_rms_norm_back(context_, gradient, x, epsilon);
  }
  Tensor Relu(Tensor x) { return api_.ggml_relu(context_, x); }
  Tensor Gelu(Tensor x) { return api_.ggml_gelu(context_, x); }
  Tensor Silu(Tensor x) { return api_.ggml_silu(context_, x); }
  Tensor SiluBack(Tensor gradient, Tensor x) { return api_.ggml_silu_back(context_, gradient, x); }
  Tensor Sigmoid(Tensor x) { return api_.ggml_sigmoid(context_, x); }
  Tensor SoftPlus(Tensor x) { return api_.ggml_softplus(context_, x); }
  // Over its length, which counts as `epsilon` where it is shorter.
  Tensor L2Norm(Tensor x, float epsilon) { return api_.ggml_l2_norm(context_, x, epsilon); }
  // query, key: (size, key heads, tokens); value: (size, heads, tokens); decay, beta: (heads, tokens); state: (size, size, heads).
  // -> output, (size, heads, tokens), with the state after them behind it
  Tensor GatedDeltaNet(Tensor query, Tensor key, Tensor value, Tensor decay, Tensor beta, Tensor state) {
    const auto flat = [&](Tensor x) { return Reshape(x, 1, x->ne[0], x->ne[1]); };
    return api_.ggml_gated_delta_net(context_, query, key, value, flat(decay), flat(beta), state, /*K=*/1);
  }
  Tensor Tanh(Tensor x) { return api_.ggml_tanh(context_, x); }
  Tensor Square(Tensor x) { return api_.ggml_sqr(context_, x); }
  // factor x + offset
  Tensor Scale(Tensor x, float factor, float offset = 0) { return api_.ggml_scale_bias(context_, x, factor, offset); }
  Tensor GeGlu(Tensor gate, Tensor up) { return api_.ggml_geglu_split(context_, gate, up); }
  // x s(alpha x) (y + 1), where s is the logistic function, x the gate up to `limit`, y what is between -limit and limit of `up`.
  Tensor SwiGluClamped(Tensor gate, Tensor up, float alpha, float limit) {
    return api_.ggml_swiglu_oai(context_, gate, up, alpha, limit);
  }
  Tensor SwiGlu(Tensor gate, Tensor up) { return api_.ggml_swiglu_split(context_, gate, up); }
  // `sinks`: (heads) a further number of each matrix of x, which takes its part of the sum; null: there is none.
  Tensor SoftMax(Tensor x, Tensor mask, float scale, Tensor sinks = nullptr) {
    Tensor probabilities = api_.ggml_soft_max_ext(context_, x, mask, scale, 0.0f);
    if (sinks) api_.ggml_soft_max_add_sinks(probabilities, sinks);
    return probabilities;
  }
  Tensor SoftMaxBack(Tensor gradient, Tensor probabilities, float scale) {
    return api_.ggml_soft_max_ext_back(context_, gradient, probabilities, scale, 0.0f);
  }
  Tensor Log(Tensor x) { return api_.ggml_log(context_, x); }
  // In place.
  Tensor Clamp(Tensor x, float low, float high) { return api_.ggml_clamp(context_, x, low, high); }
  // 1 where x > 0, else 0
  Tensor Step(Tensor x) { return api_.ggml_step(context_, x); }
  Tensor SumRows(Tensor x) { return api_.ggml_sum_rows(context_, x); }
};

// One graph under construction.
class Graph : public TensorFormulas {
 public:
  explicit Graph(size_t max_nodes = kMaxGraphNodes);

  ggml_cgraph* get() { return graph_; }
  // Makes `tensor` and all it depends on run, after what was added before.
  Tensor Add(Tensor tensor);

  // A tensor whose data lies in `slot`.
  Tensor At(Slot slot, ggml_type type, std::initializer_list<int64_t> shape);
  // Makes a tensor that is not computed yet write into `slot`. An in-place function writes into its operand.
  Tensor Pin(Tensor tensor, Slot slot);

  // Runs `run` on `x` in place, on the CPU only. The inputs are src[1] and further; `data` is passed on.
  Tensor Custom(Tensor x, std::initializer_list<Tensor> inputs, ggml_custom_op_t run, void* data = nullptr) {
    return api_.ggml_custom_inplace(context_, x, const_cast<Tensor*>(inputs.begin()),
                                    static_cast<int>(inputs.size()), RunKept, GGML_N_TASKS_MAX, Keep(CustomNode{run, data, &failure_}));
  }
  // A new tensor that `run` fills, on the CPU only. The inputs are src[0] and further.
  Tensor Custom(std::array<int64_t, 3> shape, std::initializer_list<Tensor> inputs, ggml_custom_op_t run,
                void* data = nullptr) {
    return api_.ggml_custom_4d(context_, GGML_TYPE_F32, shape[0], shape[1], shape[2], 1,
                               const_cast<Tensor*>(inputs.begin()), static_cast<int>(inputs.size()), RunKept,
                               GGML_N_TASKS_MAX, Keep(CustomNode{run, data, &failure_}));
  }
  // Throws what a function has thrown on the engine's threads, when the graph has run.
  void RethrowFailure() { failure_.Rethrow(); }
  // A number, 0 before the graph runs, from which the threads of one function take their next piece of work.
  std::atomic<int64_t>* Counter() { return &counters_.emplace_back(0); }
  // A value that lives as long as the graph.
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

  ggml_cgraph* graph_;
  ThreadFailure failure_;
  std::deque<std::atomic<int64_t>> counters_;
  std::vector<std::shared_ptr<void>> kept_;
};

// Sets `count` numbers in `slot` to 0.
void Zero(Slot slot, int64_t count);

// Copies `count` numbers of `type` into `slot`.
void Upload(Slot slot, ggml_type type, const void* values, size_t count);

}  // namespace onpolicy::training
