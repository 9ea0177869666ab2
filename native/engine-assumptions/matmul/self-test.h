// This addon's kernels -> whether they agree with the engine's: graphs of one operation, computed by its CPU backend on two threads.
#pragma once
#include <array>
#include <vector>

#include "base/engine.h"

namespace onpolicy::matmul {

class TestGraph {
 public:
  explicit TestGraph(ggml_backend_dev_t cpu);
  ~TestGraph();
  TestGraph(const TestGraph&) = delete;
  TestGraph& operator=(const TestGraph&) = delete;

  ggml_context* context() const { return context_; }
  // Creates a tensor that holds `data`. `where`: the type of its memory; null for the engine's own.
  ggml_tensor* Input(ggml_type type, const std::array<int64_t, 4>& shape, const void* data, ggml_backend_buffer_type_t where = nullptr);
  // Computes `y` and returns its numbers. Returns an empty vector if it cannot be computed.
  std::vector<float> Compute(ggml_tensor* y);

 private:
  void Place(ggml_tensor* tensor, ggml_backend_buffer_type_t where);

  const ggml_backend_buffer_type_t memory_;
  const ggml_backend_t backend_;
  ggml_context* const context_;
  std::vector<ggml_backend_buffer_t> buffers_;
};

// Returns `count` numbers in [-1, 1), always the same.
std::vector<float> TestNumbers(int64_t count);

// Returns true if both are about the same, and `expected` is not all zero.
bool AreAlike(const std::vector<float>& expected, const std::vector<float>& got);

}  // namespace onpolicy::matmul
