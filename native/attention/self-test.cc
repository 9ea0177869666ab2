#include "attention/self-test.h"

#include <cmath>

#include "attention/hook.h"

namespace onpolicy::attention {
namespace {

constexpr int64_t kCells = 1280;  // more than a span
constexpr double kTolerance = 0.02;  // the engine adds values in 16 bits
constexpr uint16_t kHidden = 0xFC00;

// As many numbers of [-1, 1), always the same.
std::vector<float> Numbers(int64_t count) {
  std::vector<float> numbers(static_cast<size_t>(count));
  uint32_t state = 1;
  for (float& number : numbers) {
    state = state * 1664525u + 1013904223u;
    number = static_cast<float>(state >> 8) * 0x1p-23f - 1;
  }
  return numbers;
}

}  // namespace

std::string SelfTest::Problem() const {
  ggml_backend_t backend = engine_.ggml_backend_dev_init(cpu_, nullptr);
  engine_.ggml_backend_cpu_set_n_threads(backend, 2);
  std::string problem;
  for (const Case& test : {Case{GGML_TYPE_F16, 1, 4, 2, 64, false}, Case{GGML_TYPE_F16, 21, 6, 2, 80, false},
                           Case{GGML_TYPE_F16, 3, 4, 4, 128, true}, Case{GGML_TYPE_Q8_0, 3, 4, 2, 64, false},
                           Case{GGML_TYPE_F16, 2, 4, 2, 256, false, 2}, Case{GGML_TYPE_F16, 3, 4, 2, 64, false, 0, true}})
    if (!Agrees(test, backend)) problem = "attention of width " + std::to_string(test.width) + " differs from the engine's";
  engine_.ggml_backend_free(backend);
  return problem;
}

bool SelfTest::Agrees(const Case& test, ggml_backend_t backend) const {
  const std::vector<float> expected = Compute(test, /*is_ours=*/false, backend), got = Compute(test, /*is_ours=*/true, backend);
  double error = 0, size = 0;
  for (size_t i = 0; i < expected.size() && i < got.size(); ++i) {
    error += (got[i] - expected[i]) * (got[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  return got.size() == expected.size() && size > 0 && error < kTolerance * kTolerance * size;
}

// (tokens, heads, width), empty if it cannot be computed.
std::vector<float> SelfTest::Compute(const Case& test, bool is_ours, ggml_backend_t backend) const {
  ggml_init_params params{7 * engine_.ggml_tensor_overhead() + engine_.ggml_graph_overhead(), nullptr, /*no_alloc=*/true};
  ggml_context* context = engine_.ggml_init(params);
  const auto make = [&](ggml_type type, int64_t rows, int64_t heads) {
    return engine_.ggml_new_tensor_4d(context, type, test.width, rows, heads, 1);
  };
  ggml_tensor *q = make(GGML_TYPE_F32, test.tokens, test.heads), *k = make(test.type, kCells, test.kv_heads);
  ggml_tensor* v = make(test.type, kCells, test.kv_heads);
  ggml_tensor* mask = engine_.ggml_new_tensor_4d(context, GGML_TYPE_F16, kCells, test.tokens, 1, 1);
  const float scale = 4 / std::sqrt(static_cast<float>(test.width));
  ggml_tensor* y = engine_.ggml_flash_attn_ext(context, q, k, v, mask, scale, 0, test.cap);
  ggml_tensor* sinks = engine_.ggml_new_tensor_4d(context, GGML_TYPE_F32, test.heads, 1, 1, 1);
  if (test.has_sinks) engine_.ggml_flash_attn_ext_add_sinks(y, sinks);
  std::vector<ggml_backend_buffer_t> buffers;
  for (ggml_tensor* tensor : {q, k, v, mask, y, sinks}) {
    buffers.push_back(engine_.ggml_backend_buft_alloc_buffer(engine_.ggml_backend_cpu_buffer_type(),
                                                             engine_.ggml_nbytes(tensor) + 4096));
    engine_.ggml_backend_tensor_alloc(buffers.back(), tensor, engine_.ggml_backend_buffer_get_base(buffers.back()));
  }
  const std::vector<float> numbers = Numbers(test.width * (kCells + 1) * (test.heads + 1));
  std::vector<uint8_t> bytes(engine_.ggml_nbytes(k));
  for (ggml_tensor* cells : {k, v}) {
    const float* from = numbers.data() + (cells == k ? 0 : test.width + 3);
    engine_.ggml_quantize_chunk(test.type, from, bytes.data(), 0, kCells * test.kv_heads, test.width, nullptr);
    engine_.ggml_backend_tensor_set(cells, bytes.data(), 0, bytes.size());
  }
  engine_.ggml_backend_tensor_set(q, numbers.data() + 7, 0, engine_.ggml_nbytes(q));
  engine_.ggml_backend_tensor_set(sinks, numbers.data() + 5, 0, engine_.ggml_nbytes(sinks));
  std::vector<uint16_t> seen(static_cast<size_t>(kCells * test.tokens), kHidden);
  for (int64_t token = 0; token < test.tokens; ++token)
    for (int64_t cell = 0; cell <= kCells - 100 + token; ++cell)
      if (!test.is_shared || cell < 200 || cell % test.tokens == token) seen[static_cast<size_t>(token * kCells + cell)] = 0;
  engine_.ggml_backend_tensor_set(mask, seen.data(), 0, seen.size() * sizeof(uint16_t));
  ggml_cgraph* graph = engine_.ggml_new_graph(context);
  engine_.ggml_build_forward_expand(graph, y);
  const Scope scope(is_ours);
  std::vector<float> result;
  if (engine_.ggml_backend_graph_compute(backend, graph) == GGML_STATUS_SUCCESS) {
    result.resize(engine_.ggml_nbytes(y) / sizeof(float));
    engine_.ggml_backend_tensor_get(y, result.data(), 0, result.size() * sizeof(float));
  }
  for (ggml_backend_buffer_t buffer : buffers) engine_.ggml_backend_buffer_free(buffer);
  engine_.ggml_free(context);
  return result;
}

}  // namespace onpolicy::attention
