// A matrix of weights times activations, by the fastest way that this device and processor have.
#pragma once
#include "trainer/device.h"
#include "trainer/graph.h"

namespace onpolicy::training {

class Products {
 public:
  Products(Graph& graph, const Device& device);

  // weight: (in, out); x: (in, row), both contiguous -> (out, row)
  Tensor Multiply(Tensor weight, Tensor x);

 private:
  // x as blocks of 8-bit integers. Products of the same x in a row share them.
  Tensor Rounded(Tensor x);

  Graph& graph_;
  bool has_fast_q8_;
  Tensor last_x_ = nullptr;
  Tensor last_rounded_ = nullptr;
};

}  // namespace onpolicy::training
