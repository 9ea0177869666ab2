// A short convolution over the tokens of each sequence of a row, by channel: y_t = sum over j of weight_j x_(t - kernel + 1 + j), and the way back.
#pragma once
#include "graphs/graph.h"

namespace onpolicy::training {

// x: (channels, row); weight: (kernel, channels); `previous`: the token before each of the row's, as in StatePlan; outlives the graph.
Tensor Convolved(Graph& graph, Tensor x, Tensor weight, const std::vector<int32_t>& previous);
// Gradient of the result -> that of x.
Tensor ConvolvedBack(Graph& graph, Tensor gradient, Tensor weight, const std::vector<int32_t>& previous);

}  // namespace onpolicy::training
