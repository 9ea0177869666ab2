// A short convolution over the tokens of each sequence of a row, by channel: y_t = sum over j of weight_j x_(t - kernel + 1 + j), and its gradient.
#pragma once
#include "trainer/graphs/graph.h"

namespace onpolicy::training {

// x: (channels, row); weight: (kernel, channels); `previous` is the token before each token of the row, as in StatePlan, and must outlive the graph.
Tensor Convolved(Graph& graph, Tensor x, Tensor weight, const std::vector<int32_t>& previous);
// Gradient of the result -> that of x.
Tensor ConvolvedBack(Graph& graph, Tensor gradient, Tensor weight, const std::vector<int32_t>& previous);

}  // namespace onpolicy::training
