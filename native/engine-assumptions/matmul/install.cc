#include "engine-assumptions/matmul/install.h"

#include <algorithm>
#include <vector>

#include "base/stay-loaded.h"
#include "engine-assumptions/matmul/buffer-type.h"
#include "engine-assumptions/matmul/hook.h"
#include "engine-assumptions/matmul/self-test.h"
#include "engine-assumptions/table/assumptions.h"

namespace onpolicy::matmul {
namespace {

const char* g_installed = nullptr;

// Shape of a test: tokens, each multiplied by a matrix of `rows` rows.
struct Shape {
  int64_t groups, rows, tokens, experts = 0;  // 0: all tokens have the same matrix
  int64_t matrices() const { return std::max<int64_t>(1, experts); }
  static constexpr int64_t kUsed = 2;  // experts of a token
};
// Whole and partial panels, tokens of one group and of several, odd numbers of blocks, experts of zero, one and many tokens.
constexpr Shape kShapes[] = {{1, 3, 1}, {3, 5 * kPanel + 3, 5}, {5, 2 * kPanel, 29}, {1, kPanel + 1, 1, 4}, {2, kPanel, 13, 5}};

// Token i has the experts i and 2 i + 1. The last expert is never used.
std::vector<int32_t> IdsOf(const Shape& shape) {
  std::vector<int32_t> ids;
  for (int64_t token = 0; token < shape.tokens; ++token)
    for (const int64_t id : {token, 2 * token + 1}) ids.push_back(static_cast<int32_t>(id % (shape.experts - 1)));
  return ids;
}

// Compares matmuls of a format in our buffer type with those in the engine's own.
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

// Returns the first format whose matmuls differ. Returns an empty string if all agree.
std::string DifferenceOf(ggml_backend_dev_t cpu, ggml_backend_buffer_type_t ours, const Kernels& kernels) {
  for (const Format& format : kFormats)
    if (!Agrees(cpu, ours, format))
      return "a matmul of " + std::string(Api().ggml_type_name(format.type)) + " by " + kernels.name + " differs from the engine's";
  return "";
}

}  // namespace

bool Install(ggml_backend_dev_t cpu) {
  const Kernels* kernels = BestKernels();
  // The engine keeps pointers into this addon until the process ends.
  if (!kernels || !StayLoaded()) return false;
  ggml_backend_buffer_type_t type = MakeBufferType(cpu, *kernels);
  std::string problem;
  const bool is_hooked = Hook(cpu, type, &problem);
  if (!Check(Assumed::kWeightTypes, problem) || !is_hooked) return false;
  if (Check(Assumed::kMatmulResults, DifferenceOf(cpu, type, *kernels))) g_installed = kernels->name;
  else Unhook(cpu);
  return g_installed != nullptr;
}

const char* Installed() { return g_installed; }

}  // namespace onpolicy::matmul
