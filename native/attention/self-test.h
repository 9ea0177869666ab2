// Attention of our own -> whether it agrees with the engine's.
#pragma once
#include <string>
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

  bool Agrees(const Case& test, ggml_backend_t backend) const;
  std::vector<float> Compute(const Case& test, bool is_ours, ggml_backend_t backend) const;

  const matmul::EngineFunctions& engine_;
  const ggml_backend_dev_t cpu_;
};

}  // namespace onpolicy::attention
