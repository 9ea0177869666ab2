// Matmuls by the fastest kernels of this device and processor. Those with weights equal the engine's, bit for bit, if it has
// packed weights.
#pragma once
#include "trainer/graphs/device.h"
#include "trainer/graphs/graph.h"
#include "trainer/weights/weights.h"

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
  // Returns x with its first two dimensions exchanged, for Multiply. It may be a view, as some kernels read matrices in any order.
  Tensor Transposed(Tensor x);

  // Returns true if the CPU multiplies rows of `size` weights by kernels for packed weights.
  static bool HasKernels(ggml_type type, int64_t size);
  // Returns true if the CPU multiplies gradients by weights of experts in the file's layout. A transposed copy would take twice their memory.
  static bool CanReadBack(ggml_type type);

 private:
  // Returns x as a sum of numbers that are nearly exact in 16 bits. GPUs multiply in 16 bits: with one matmul gradients are off by 3e-3, with one of
  // each half by 1.3e-3 (test/gpu/training.gpu.test.ts).
  struct Halves {
    Tensor high = nullptr, low = nullptr;
  };
  Halves HalvesOf(Tensor x);
  // Returns x in the form by which weights of this type are multiplied. Consecutive matmuls of the same x share it.
  Tensor Rounded(Tensor x, ggml_type type);

  Graph& graph_;
  const bool is_cpu_;
  const bool has_own_;  // there are kernels of this library for matrices in any order
  Tensor last_x_ = nullptr;
  Halves last_halves_;
  ggml_type last_type_ = GGML_TYPE_COUNT;
  Tensor last_rounded_ = nullptr;
};

}  // namespace onpolicy::training
