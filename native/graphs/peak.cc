#include "graphs/peak.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "graphs/graph.h"

namespace onpolicy::training {

ggml_type TypeNamed(const std::string& name) {
  for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
    const char* known = Api().ggml_type_name(static_cast<ggml_type>(i));
    if (known && name == known) return static_cast<ggml_type>(i);
  }
  return GGML_TYPE_COUNT;
}

Status MeasureMatMul(Device* device, const std::string& type_name, int64_t in, int64_t out, int64_t rows, int repeats,
                     double* gflops) {
  const Library& api = Api();
  const ggml_type type = TypeNamed(type_name);
  if (type == GGML_TYPE_COUNT || in % api.ggml_blck_size(type) != 0)
    return Status::Fail("INVALID_REQUEST", "expected whole blocks of a known weight type");
  std::vector<float> values(static_cast<size_t>(std::max(in * out, in * rows)));
  uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) / static_cast<float>(1 << 24) - 0.5f;
  }
  std::vector<char> packed(static_cast<size_t>(out) * api.ggml_row_size(type, in));
  if (type == GGML_TYPE_F32)
    std::copy_n(reinterpret_cast<const char*>(values.data()), packed.size(), packed.data());
  else
    api.ggml_quantize_chunk(type, values.data(), packed.data(), 0, out, in, nullptr);
  Arena arena(device);
  const Slot weight{&arena, arena.Reserve(packed.size())};
  const Slot input{&arena, arena.Reserve(static_cast<size_t>(in * rows) * sizeof(float))};
  if (Status status = arena.Allocate(); !status.ok()) return status;
  double best = 0;
  for (int i = 0; i < repeats; ++i) {
    Graph graph(8);
    Tensor w = graph.At(weight, type, {in, out}), x = graph.At(input, GGML_TYPE_F32, {in, rows});
    if (i == 0) {
      api.ggml_backend_tensor_set(w, packed.data(), 0, packed.size());
      api.ggml_backend_tensor_set(x, values.data(), 0, static_cast<size_t>(in * rows) * sizeof(float));
    }
    graph.Add(graph.MulMat(w, x));
    const auto start = std::chrono::steady_clock::now();
    if (Status status = device->Run(graph); !status.ok()) return status;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, 2e-9 * static_cast<double>(in * out * rows) / seconds);
  }
  *gflops = best;
  return Status::Ok();
}

}  // namespace onpolicy::training
