#include "matmul/install.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/stay-loaded.h"
#include "matmul/buffer-type.h"
#include "matmul/hook.h"

namespace onpolicy::matmul {
namespace {

Installation g_installation;

// Tokens, each with a matrix of these rows.
struct Shape {
  int64_t groups, rows, tokens, experts = 0;  // 0: all tokens have the same matrix
  int64_t matrices() const { return std::max<int64_t>(1, experts); }
  int64_t outputs() const { return rows * tokens * (experts > 0 ? kUsed : 1); }
  static constexpr int64_t kUsed = 2;  // experts of a token
};
// Panels that are whole and not, tokens of one group and of several, odd numbers of blocks, experts of none, one and many tokens.
constexpr Shape kShapes[] = {{1, 3, 1}, {3, 5 * kPanel + 3, 5}, {5, 2 * kPanel, 29}, {1, kPanel + 1, 1, 4}, {2, kPanel, 13, 5}};

// Matmuls of each format on two threads, in ours and in ggml's own buffer type.
class SelfTest {
 public:
  SelfTest(const EngineFunctions& engine, ggml_backend_t backend) : engine_(engine), backend_(backend) {}

  bool Agrees(ggml_backend_buffer_type_t ours, const Format& format) const {
    for (const Shape& shape : kShapes)
      if (!Agrees(ours, format, shape)) return false;
    return true;
  }

 private:
  static constexpr double kTolerance = 0.02;  // what 8-bit activations make of differently chosen scales

  bool Agrees(ggml_backend_buffer_type_t ours, const Format& format, const Shape& shape) const {
    const int64_t width = format.group * shape.groups;
    const int64_t rows = shape.rows * shape.matrices();
    std::vector<float> numbers(static_cast<size_t>(width * (rows + shape.tokens)));
    uint32_t state = 1;
    for (float& number : numbers) {
      state = state * 1664525u + 1013904223u;
      number = static_cast<float>(state >> 8) * 0x1p-23f - 1;
    }
    const float* x = numbers.data() + width * rows;
    std::vector<uint8_t> weights(static_cast<size_t>(rows * format.row_bytes(width)));
    engine_.ggml_quantize_chunk(format.type, numbers.data(), weights.data(), 0, rows, width, nullptr);
    const std::vector<float> expected = Matmul(engine_.ggml_backend_cpu_buffer_type(), format, shape, weights, x);
    const std::vector<float> got = Matmul(ours, format, shape, weights, x);
    double error = 0, size = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      error += (got[i] - expected[i]) * (got[i] - expected[i]);
      size += expected[i] * expected[i];
    }
    return !got.empty() && size > 0 && error < kTolerance * kTolerance * size;
  }

  // Token i has the experts i and 2 i + 1, but none the last one.
  static std::vector<int32_t> Ids(const Shape& shape) {
    std::vector<int32_t> ids;
    for (int64_t token = 0; token < shape.tokens; ++token)
      for (const int64_t id : {token, 2 * token + 1}) ids.push_back(static_cast<int32_t>(id % (shape.experts - 1)));
    return ids;
  }

  // (tokens, experts of each, rows), empty if it cannot be computed.
  std::vector<float> Matmul(ggml_backend_buffer_type_t type, const Format& format, const Shape& shape,
                             const std::vector<uint8_t>& weights, const float* x) const {
    ggml_init_params params{5 * engine_.ggml_tensor_overhead() + engine_.ggml_graph_overhead(), nullptr, /*no_alloc=*/true};
    ggml_context* context = engine_.ggml_init(params);
    const bool has_experts = shape.experts > 0;
    ggml_tensor* w = engine_.ggml_new_tensor_4d(context, format.type, format.group * shape.groups, shape.rows, shape.matrices(), 1);
    ggml_tensor* activations = engine_.ggml_new_tensor_4d(context, GGML_TYPE_F32, w->ne[0], has_experts ? 1 : shape.tokens,
                                                          has_experts ? shape.tokens : 1, 1);
    ggml_tensor* ids = has_experts ? engine_.ggml_new_tensor_2d(context, GGML_TYPE_I32, Shape::kUsed, shape.tokens) : nullptr;
    ggml_tensor* y = has_experts ? engine_.ggml_mul_mat_id(context, w, activations, ids) : engine_.ggml_mul_mat(context, w, activations);
    std::vector<float> result;
    std::vector<ggml_backend_buffer_t> buffers;
    const auto place = [&](ggml_backend_buffer_type_t where, ggml_tensor* tensor) {
      buffers.push_back(engine_.ggml_backend_buft_alloc_buffer(where, 2 * engine_.ggml_nbytes(tensor) + 4096));
      engine_.ggml_backend_tensor_alloc(buffers.back(), tensor, engine_.ggml_backend_buffer_get_base(buffers.back()));
    };
    place(type, w);
    place(engine_.ggml_backend_cpu_buffer_type(), activations);
    place(engine_.ggml_backend_cpu_buffer_type(), y);
    if (has_experts) {
      place(engine_.ggml_backend_cpu_buffer_type(), ids);
      engine_.ggml_backend_tensor_set(ids, Ids(shape).data(), 0, engine_.ggml_nbytes(ids));
    }
    engine_.ggml_backend_tensor_set(w, weights.data(), 0, weights.size());
    engine_.ggml_backend_tensor_set(activations, x, 0, engine_.ggml_nbytes(activations));
    ggml_cgraph* graph = engine_.ggml_new_graph(context);
    engine_.ggml_build_forward_expand(graph, y);
    if (engine_.ggml_backend_graph_compute(backend_, graph) == GGML_STATUS_SUCCESS) {
      result.resize(static_cast<size_t>(shape.outputs()));
      engine_.ggml_backend_tensor_get(y, result.data(), 0, result.size() * sizeof(float));
    }
    for (ggml_backend_buffer_t buffer : buffers) engine_.ggml_backend_buffer_free(buffer);
    engine_.ggml_free(context);
    return result;
  }

  const EngineFunctions& engine_;
  const ggml_backend_t backend_;
};

Installation TryInstall(ggml_backend_dev_t cpu) {
  Installation result;
  const Kernels* kernels = BestKernels();
  if (!kernels) return result;
  EngineFunctions engine;
  if (!FindEngineFunctions(cpu, &engine, &result.problem)) return result;
  // The engine gets pointers into this addon and keeps them until the process ends.
  if (!StayLoaded()) {
    result.problem = "the addon could not be kept in memory";
    return result;
  }
  ggml_backend_reg_t reg = engine.ggml_backend_dev_backend_reg(cpu);
  if (reg->api_version != GGML_BACKEND_API_VERSION) {
    result.problem = "the engine's backends have version " + std::to_string(reg->api_version);
    return result;
  }
  ggml_backend_buffer_type_t type = MakeBufferType(cpu, engine, *kernels);
  if (!Hook(cpu, engine, type, &result.problem)) return result;
  ggml_backend_t backend = engine.ggml_backend_dev_init(cpu, nullptr);
  engine.ggml_backend_cpu_set_n_threads(backend, 2);
  for (const Format& format : kFormats)
    if (result.problem.empty() && !SelfTest(engine, backend).Agrees(type, format))
      result.problem = "a matmul by " + std::string(kernels->name) + " differs from the engine's";
  engine.ggml_backend_free(backend);
  if (result.problem.empty()) result.kernels = kernels->name;
  else Unhook(cpu, engine);
  return result;
}

}  // namespace

const Installation& Install(ggml_backend_dev_t cpu) {
  g_installation = TryInstall(cpu);
  return g_installation;
}

const Installation& Installed() { return g_installation; }

}  // namespace onpolicy::matmul
