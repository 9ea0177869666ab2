#include "engine-assumptions/matmul/self-test.h"

namespace onpolicy::matmul {
namespace {

constexpr size_t kTensors = 16;
// Relative error allowed for 8-bit activations with differently chosen scales, and for attention values that the engine adds in 16 bits.
constexpr double kTolerance = 0.02;

}  // namespace

TestGraph::TestGraph(ggml_backend_dev_t cpu)
    : memory_(Api().ggml_backend_dev_buffer_type(cpu)),
      backend_(Api().ggml_backend_dev_init(cpu, nullptr)),
      context_(Api().ggml_init({kTensors * Api().ggml_tensor_overhead() + Api().ggml_graph_overhead_custom(kTensors, false), nullptr,
                                /*no_alloc=*/true})) {
  Api().ggml_backend_set_n_threads(backend_, 2);
}

TestGraph::~TestGraph() {
  for (ggml_backend_buffer_t buffer : buffers_) Api().ggml_backend_buffer_free(buffer);
  Api().ggml_free(context_);
  Api().ggml_backend_free(backend_);
}

void TestGraph::Place(ggml_tensor* tensor, ggml_backend_buffer_type_t where) {
  buffers_.push_back(Api().ggml_backend_buft_alloc_buffer(where, 2 * Api().ggml_nbytes(tensor) + 4096));
  Api().ggml_backend_tensor_alloc(buffers_.back(), tensor, Api().ggml_backend_buffer_get_base(buffers_.back()));
}

ggml_tensor* TestGraph::Input(ggml_type type, const std::array<int64_t, 4>& shape, const void* data, ggml_backend_buffer_type_t where) {
  ggml_tensor* tensor = Api().ggml_new_tensor(context_, type, GGML_MAX_DIMS, shape.data());
  Place(tensor, where ? where : memory_);
  Api().ggml_backend_tensor_set(tensor, data, 0, Api().ggml_nbytes(tensor));
  return tensor;
}

std::vector<float> TestGraph::Compute(ggml_tensor* y) {
  Place(y, memory_);
  ggml_cgraph* graph = Api().ggml_new_graph_custom(context_, kTensors, false);
  Api().ggml_build_forward_expand(graph, y);
  if (Api().ggml_backend_graph_compute(backend_, graph) != GGML_STATUS_SUCCESS) return {};
  std::vector<float> result(Api().ggml_nbytes(y) / sizeof(float));
  Api().ggml_backend_tensor_get(y, result.data(), 0, result.size() * sizeof(float));
  return result;
}

std::vector<float> TestNumbers(int64_t count) {
  std::vector<float> numbers(static_cast<size_t>(count));
  uint32_t state = 1;
  for (float& number : numbers) {
    state = state * 1664525u + 1013904223u;
    number = static_cast<float>(state >> 8) * 0x1p-23f - 1;
  }
  return numbers;
}

bool AreAlike(const std::vector<float>& expected, const std::vector<float>& got) {
  double error = 0, size = 0;
  for (size_t i = 0; i < expected.size() && i < got.size(); ++i) {
    error += (got[i] - expected[i]) * (got[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  return got.size() == expected.size() && size > 0 && error < kTolerance * kTolerance * size;
}

}  // namespace onpolicy::matmul
