// Matmuls by the fastest kernels of this device and processor. Those with weights are the engine's own, bit for bit, where it
// has packed weights.
#pragma once
#include "graphs/device.h"
#include "graphs/graph.h"
#include "weights/weights.h"

namespace onpolicy::training {

class Matmuls {
 public:
  Matmuls(Graph& graph, const Device& device);

  // a: (size, outputs, n), of any type if contiguous; b: (size, columns, n) -> (outputs, columns, n)
  Tensor Multiply(Tensor a, Tensor b);
  // Weights (size, outputs) of any type; x: (size, tokens) -> (outputs, tokens)
  Tensor Forward(Tensor weight, Tensor x);
  // (in, out, experts) weights, (in, 1 or used, rows) x -> (out, used, rows): each row with its experts `ids`, (used, rows).
  Tensor ForwardOf(Tensor weight, Tensor x, Tensor ids);
  // The transposed weights; gradient: (outputs, tokens) -> (size, tokens)
  Tensor Backward(const Linear& linear, Tensor gradient);
  // (out, 1 or used, rows) gradient -> (in, used, rows): of each row with its experts `ids`
  Tensor BackwardOf(const Linear& linear, Tensor gradient, Tensor ids);
  // x with its first two dimensions exchanged, as Multiply takes it: some ways read matrices in any order.
  Tensor Transposed(Tensor x);

  // Whether a CPU multiplies rows of `size` weights by kernels for packed ones.
  static bool HasKernels(ggml_type type, int64_t size);
  // Whether a CPU multiplies gradients by weights of experts as the file has them: a transposed copy would take twice their memory.
  static bool CanReadBack(ggml_type type);

 private:
  // x as a sum of numbers that 16 bits hold nearly. GPUs multiply in 16 bits: with one matmul gradients are off by 3e-3, with one of
  // each half by 1.3e-3 (test/gpu/training.gpu.test.ts).
  struct Halves {
    Tensor high = nullptr, low = nullptr;
  };
  Halves HalvesOf(Tensor x);
  // x as weights of this type are multiplied by it. Matmuls of the same x in a row share it.
  Tensor Rounded(Tensor x, ggml_type type);

  Graph& graph_;
  const bool is_cpu_;
  const bool has_own_;  // kernels of our own for matrices in any order
  Tensor last_x_ = nullptr;
  Halves last_halves_;
  ggml_type last_type_ = GGML_TYPE_COUNT;
  Tensor last_rounded_ = nullptr;
};

}  // namespace onpolicy::training
