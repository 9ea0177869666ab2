// Attention and recurrent layers of our own -> whether they agree with the engine's.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "matmul/engine-functions.h"

namespace onpolicy::attention {

// Needs the hook to be in place.
class SelfTest {
 public:
  SelfTest(const matmul::EngineFunctions& engine, ggml_backend_dev_t cpu) : engine_(engine), cpu_(cpu) {}

  // Empty: they agree.
  std::string Problem() const;

 private:
  struct Case {
    ggml_type type;
    int64_t tokens, heads, kv_heads, width;
    bool is_shared;  // cells of some tokens lie between those of others
    float cap = 0;   // of scores
    bool has_sinks = false;
  };

  using Inputs = std::vector<std::pair<ggml_tensor*, const void*>>;
  // Whether `compute(is_ours)` gives about the same for both.
  template <typename Compute>
  static bool Agree(const Compute& compute);
  std::vector<float> Attention(const Case& test, bool is_ours, ggml_backend_t backend) const;
  std::vector<float> DeltaNet(int64_t tokens, int64_t gates, bool is_ours, ggml_backend_t backend) const;
  std::vector<float> Convolution(int64_t tokens, bool is_ours, ggml_backend_t backend) const;
  ggml_context* Context() const;
  // The numbers of `y`, empty if it cannot be computed. Frees the context.
  std::vector<float> Result(ggml_context* context, ggml_tensor* y, const Inputs& inputs, bool is_ours, ggml_backend_t backend) const;

  const matmul::EngineFunctions& engine_;
  const ggml_backend_dev_t cpu_;
};

}  // namespace onpolicy::attention
