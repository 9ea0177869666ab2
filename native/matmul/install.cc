#include "matmul/install.h"

#include <algorithm>
#include <vector>

#include "base/stay-loaded.h"
#include "matmul/buffer-type.h"
#include "matmul/hook.h"
#include "matmul/self-test.h"

namespace onpolicy::matmul {
namespace {

Installation g_installation;

// Tokens, each with a matrix of these rows.
struct Shape {
  int64_t groups, rows, tokens, experts = 0;  // 0: all tokens have the same matrix
  int64_t matrices() const { return std::max<int64_t>(1, experts); }
  static constexpr int64_t kUsed = 2;  // experts of a token
};
// Panels that are whole and not, tokens of one group and of several, odd numbers of blocks, experts of none, one and many tokens.
constexpr Shape kShapes[] = {{1, 3, 1}, {3, 5 * kPanel + 3, 5}, {5, 2 * kPanel, 29}, {1, kPanel + 1, 1, 4}, {2, kPanel, 13, 5}};

// Token i has the experts i and 2 i + 1, but none the last one.
std::vector<int32_t> IdsOf(const Shape& shape) {
  std::vector<int32_t> ids;
  for (int64_t token = 0; token < shape.tokens; ++token)
    for (const int64_t id : {token, 2 * token + 1}) ids.push_back(static_cast<int32_t>(id % (shape.experts - 1)));
  return ids;
}

// Matmuls of a format in our buffer type and in the engine's own.
bool Agrees(ggml_backend_dev_t cpu, ggml_backend_buffer_type_t ours, const Format& format, const Shape& shape) {
  const int64_t width = format.group * shape.groups, rows = shape.rows * shape.matrices();
  const std::vector<float> numbers = TestNumbers(width * (rows + shape.tokens));
  std::vector<uint8_t> weights(static_cast<size_t>(rows * format.row_bytes(width)));
  Api().ggml_quantize_chunk(format.type, numbers.data(), weights.data(), 0, rows, width, nullptr);
  const auto matmul = [&](ggml_backend_buffer_type_t type) {
    TestGraph graph(cpu);
    const bool has_experts = shape.experts > 0;
    ggml_tensor* w = graph.Input(format.type, {width, shape.rows, shape.matrices(), 1}, weights.data(), type);
    ggml_tensor* x = graph.Input(GGML_TYPE_F32, {width, has_experts ? 1 : shape.tokens, has_experts ? shape.tokens : 1, 1},
                                 numbers.data() + width * rows);
    if (!has_experts) return graph.Compute(Api().ggml_mul_mat(graph.context(), w, x));
    ggml_tensor* ids = graph.Input(GGML_TYPE_I32, {Shape::kUsed, shape.tokens, 1, 1}, IdsOf(shape).data());
    return graph.Compute(Api().ggml_mul_mat_id(graph.context(), w, x, ids));
  };
  return AreAlike(matmul(nullptr), matmul(ours));
}

bool Agrees(ggml_backend_dev_t cpu, ggml_backend_buffer_type_t ours, const Format& format) {
  return std::all_of(std::begin(kShapes), std::end(kShapes), [&](const Shape& shape) { return Agrees(cpu, ours, format, shape); });
}

Installation TryInstall(ggml_backend_dev_t cpu) {
  Installation result;
  const Kernels* kernels = BestKernels();
  if (!kernels) return result;
  // The engine gets pointers into this addon and keeps them until the process ends.
  if (!StayLoaded()) {
    result.problem = "the addon could not be kept in memory";
    return result;
  }
  ggml_backend_reg_t reg = Api().ggml_backend_dev_backend_reg(cpu);
  if (reg->api_version != GGML_BACKEND_API_VERSION) {
    result.problem = "the engine's backends have version " + std::to_string(reg->api_version);
    return result;
  }
  ggml_backend_buffer_type_t type = MakeBufferType(cpu, *kernels);
  if (!Hook(cpu, type, &result.problem)) return result;
  for (const Format& format : kFormats)
    if (result.problem.empty() && !Agrees(cpu, type, format))
      result.problem = "a matmul by " + std::string(kernels->name) + " differs from the engine's";
  if (result.problem.empty()) result.kernels = kernels->name;
  else Unhook(cpu);
  return result;
}

}  // namespace

const Installation& Install(ggml_backend_dev_t cpu) {
  g_installation = TryInstall(cpu);
  return g_installation;
}

const Installation& Installed() { return g_installation; }

}  // namespace onpolicy::matmul
