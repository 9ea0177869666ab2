// The object of ggml-cpu's repacking on Linux. The engine is built with a compiler of the same class layout, so the object is called
// directly.
#include "engine-assumptions/matmul/repacking.h"

#ifdef __linux__

namespace onpolicy::matmul {
namespace {

class BothTraits : public ggml::cpu::tensor_traits {
 public:
  bool work_size(int threads, const ggml_tensor* node, size_t& size) override { return WorkSizeOf(threads, node, size); }
  bool compute_forward(ggml_compute_params* params, ggml_tensor* node) override { return Compute(params, node); }
};

class StandIn : public ggml::cpu::extra_buffer_type {
 public:
  bool supports_op(ggml_backend_dev_t cpu, const ggml_tensor* op) override { return SupportedByRepacking(cpu, op); }
  ggml::cpu::tensor_traits* get_tensor_traits(const ggml_tensor*) override { return &traits_; }

 private:
  BothTraits traits_;
};

ggml::cpu::extra_buffer_type* g_repacking = nullptr;

}  // namespace

const char* RecognizeRepacking(ggml_backend_dev_t, ggml_backend_buffer_type_t repack) {
  g_repacking = static_cast<ggml::cpu::extra_buffer_type*>(repack->context);
  return g_repacking ? nullptr : "the engine's repacking has no object";
}

void* RepackingStandIn() {
  static StandIn stand_in;
  return static_cast<ggml::cpu::extra_buffer_type*>(&stand_in);
}

bool SupportedByRepacking(ggml_backend_dev_t cpu, const ggml_tensor* op) { return g_repacking->supports_op(cpu, op); }

bool WorkSizeOfRepacking(int threads, const ggml_tensor* node, size_t& size) {
  ggml::cpu::tensor_traits* traits = g_repacking->get_tensor_traits(node);
  return traits && traits->work_size(threads, node, size);
}

bool ComputeByRepacking(ggml_compute_params* params, ggml_tensor* node) {
  ggml::cpu::tensor_traits* traits = g_repacking->get_tensor_traits(node);
  return traits && traits->compute_forward(params, node);
}

}  // namespace onpolicy::matmul

#endif
