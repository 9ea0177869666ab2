// The speed of matmuls on this machine: the yardstick for a trainer's speed.
#include <algorithm>
#include <chrono>

#include "./entry.h"
#include "addon/arguments.h"
#include "addon/async-task.h"
#include "addon/unwrap.h"
#include "trainer/graphs/graph.h"

namespace onpolicy {
namespace {

// Times one matmul of an (in, out) weight of a type with `rows` activations: GFLOP/s of the best of `repeats`.
double MeasureMatMul(training::Device* device, const std::string& type_name, int64_t in, int64_t out, int64_t rows, int repeats) {
  const Library& api = Api();
  const ggml_type type = training::TypeNamed(type_name);
  if (type == GGML_TYPE_COUNT || in % api.ggml_blck_size(type) != 0)
    throw Failure("INVALID_REQUEST", "expected whole blocks of a known weight type");
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
  training::Arena arena(device);
  const training::Slot weight{&arena, arena.Reserve(packed.size())};
  const training::Slot input{&arena, arena.Reserve(static_cast<size_t>(in * rows) * sizeof(float))};
  arena.Allocate();
  double best = 0;
  for (int i = 0; i < repeats; ++i) {
    training::Graph graph;
    training::Tensor w = graph.At(weight, type, {in, out}), x = graph.At(input, GGML_TYPE_F32, {in, rows});
    if (i == 0) {
      api.ggml_backend_tensor_set(w, packed.data(), 0, packed.size());
      api.ggml_backend_tensor_set(x, values.data(), 0, static_cast<size_t>(in * rows) * sizeof(float));
    }
    graph.Add(graph.MulMat(w, x));
    const auto start = std::chrono::steady_clock::now();
    device->Run(graph);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, 2e-9 * static_cast<double>(in * out * rows) / seconds);
  }
  return best;
}

// measureMatMul({ type, in, out, rows, repeats, threads, device }) -> Promise<GFLOP/s>
Napi::Value MeasurePeak(const Napi::CallbackInfo& info) {
  const Fields given(info[0]);
  RequireLibrary(info.Env());
  return AsyncTask::Run(
      info.Env(),
      [type = given.Text("type"), in = given.Integer("in", 1), out = given.Integer("out", 1),
       rows = given.Integer("rows", 1), repeats = given.Integer("repeats"), threads = given.Integer("threads", 1, 512),
       name = given.Text("device")] {
        return MeasureMatMul(training::Device::Open(name, threads).get(), type, in, out, rows, repeats);
      },
      Napi::Number::New);
}

}  // namespace

void RegisterPeak(Napi::Env env, Napi::Object exports) {
  exports.Set("measureMatMul", Napi::Function::New<MeasurePeak>(env, "measureMatMul"));
}

}  // namespace onpolicy
