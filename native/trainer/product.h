// Matrix products by the fastest kernels of this device and processor.
#pragma once
#include "trainer/device.h"
#include "trainer/graph.h"

namespace onpolicy::training {

class Products {
 public:
  Products(Graph& graph, const Device& device);

  // a: (size, outputs, n), of any type if contiguous; b: (size, columns, n) -> (outputs, columns, n)
  Tensor Multiply(Tensor a, Tensor b);
  // x with its first two dimensions exchanged, as Multiply takes it: some ways read matrices in any order.
  Tensor Transposed(Tensor x);

 private:
  // x as a sum of numbers that 16 bits hold nearly. GPUs multiply in 16 bits: with one product gradients are off by 3e-3, with one of
  // each half by 1.3e-3 (test/gpu/training.gpu.test.ts).
  struct Halves {
    Tensor high = nullptr, low = nullptr;
  };
  Halves HalvesOf(Tensor x);
  // x as blocks of 8-bit integers. Products of the same x in a row share them.
  Tensor Rounded(Tensor x);

  Graph& graph_;
  bool is_cpu_;
  bool has_own_;  // kernels of our own
  Tensor last_x_ = nullptr;
  Halves last_halves_;
  Tensor last_rounded_ = nullptr;
};

}  // namespace onpolicy::training
