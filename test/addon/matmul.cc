// Packed matmuls for JavaScript: which kernels there are, and one matmul by each of them, to check and to time them.
#include <napi.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <new>

#include "base/threads.h"
#include "./entry.h"
#include "./kernel-sets.h"
#include "kernels/matmul/matmul.h"
#include "addon/arguments.h"
#include "addon/async-task.h"
#include "engine-assumptions/matmul/experts.h"

namespace onpolicy {
namespace {

namespace np = matmul;

// matmulKernels() -> the names of the kernels that this processor runs, the fastest first.
Napi::Value MatmulKernels(const Napi::CallbackInfo& info) { return SupportedSets(info.Env(), np::kAllKernels); }

constexpr std::align_val_t kCacheLine{64};
struct AlignedFree {
  void operator()(void* memory) const { ::operator delete(memory, kCacheLine); }
};
using Aligned = std::unique_ptr<void, AlignedFree>;
Aligned Allocate(size_t bytes) { return Aligned(::operator new(bytes + 8192, kCacheLine)); }

struct ProductRequest {
  const np::Kernels* kernels = nullptr;
  const np::Format* format = nullptr;
  int64_t width = 0, rows = 0, experts = 0, used = 0, tokens = 0;
  std::vector<uint8_t> weights;
  std::vector<int32_t> ids;
  std::vector<float> x, y;
  int threads = 1;
  int rounds = 1;
  std::vector<float> seconds;  // (rounds)
};

// Every thread takes its share of the blocks, then of the panels.
void Multiply(ProductRequest& request) {
  const np::Format& format = *request.format;
  const Aligned packed = Allocate(np::PackedBytes(format, request.width, request.rows));
  const Aligned rounded = Allocate(np::RoundedBytes(format, request.width, request.tokens));
  const np::PackedMatrix matrix{&format, static_cast<const uint8_t*>(packed.get()), request.width, request.rows};
  np::PackPanels(matrix, request.weights.data(), 0, matrix.panel_count(), static_cast<uint8_t*>(packed.get()));
  request.y.assign(static_cast<size_t>(request.rows * request.tokens), 0);
  const auto share = [&](const auto& work, int64_t count) {
    OnThreads(request.threads, [&](int i) { work(count * i / request.threads, count * (i + 1) / request.threads); });
  };
  for (int round = 0; round < request.rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    share([&](int64_t first, int64_t last) {
      np::RoundBlocks(*request.kernels, format, request.width,
                      {request.x.data(), static_cast<size_t>(request.width) * sizeof(float), request.tokens}, first, last,
                      static_cast<int32_t*>(rounded.get()));
    }, matrix.blocks());
    share([&](int64_t first, int64_t last) {
      np::MultiplyPanels(*request.kernels, matrix, static_cast<const int32_t*>(rounded.get()), request.tokens, first, last,
                         {request.y.data(), request.rows});
    }, matrix.panel_count());
    request.seconds.push_back(std::chrono::duration<float>(std::chrono::steady_clock::now() - start).count());
  }
  np::UnpackPanels(matrix, 0, matrix.panel_count(), request.weights.data());
}

// Multiplies each token by the matrices of its experts.
void MultiplyExperts(ProductRequest& request) {
  const np::Format& format = *request.format;
  const size_t bytes = np::PackedBytes(format, request.width, request.rows);
  const Aligned packed = Allocate(bytes * static_cast<size_t>(request.experts));
  const np::PackedMatrix first{&format, static_cast<const uint8_t*>(packed.get()), request.width, request.rows};
  for (int64_t i = 0; i < request.experts; ++i)
    np::PackPanels(first, request.weights.data() + i * request.rows * format.row_bytes(request.width), 0, first.panel_count(),
                   static_cast<uint8_t*>(packed.get()) + static_cast<size_t>(i) * bytes);
  request.y.assign(static_cast<size_t>(request.rows * request.tokens * request.used), 0);
  const size_t row = static_cast<size_t>(request.width) * sizeof(float), token = request.x.size() * sizeof(float) / static_cast<size_t>(request.tokens);
  const np::ExpertPlan plan(*request.kernels,
                            {first, request.experts, request.tokens, request.used, reinterpret_cast<const char*>(request.ids.data()),
                             static_cast<size_t>(request.used) * sizeof(int32_t), reinterpret_cast<const char*>(request.x.data()), token,
                             row, static_cast<int64_t>(token / row), request.y.data()},
                            request.threads);
  const Aligned work = Allocate(plan.work_bytes());
  auto* const memory = static_cast<uint8_t*>(work.get());
  OnThreads(request.threads, [&](int i) { plan.Round(i, memory); });
  std::atomic<int64_t> piece = 0;
  OnThreads(request.threads, [&](int i) { plan.Multiply(i, memory, [&] { return piece++; }); });
}

ProductRequest ReadRequest(const Fields& options) {
  ProductRequest request;
  request.kernels = ReadKernels(options, np::kAllKernels, "matmulKernels()");
  request.format = np::FormatOf(static_cast<ggml_type>(options.Integer("type")));
  if (!request.format) RefuseField(options["type"].Env(), "type", "a type of ggml that can be packed");
  request.width = options.Integer("width", 1);
  request.rows = options.Integer("rows", 1);
  request.weights = ReadVector<uint8_t>(options["weights"], "weights");
  request.x = ReadVector<float>(options["x"], "x");
  request.threads = options.Integer("threads", 1, 64);
  return request;
}

// packedMatmul({ kernels, type, width, rows, weights, x, threads, rounds }) -> Promise<{ y, weights, seconds }>. `type`: of ggml;
// weights: (rows, width) in it; x: (tokens, width); y: (tokens, rows); the returned weights are packed and unpacked.
Napi::Value PackedMatmul(const Napi::CallbackInfo& info) {
  const Fields options(info[0]);
  auto request = std::make_shared<ProductRequest>(ReadRequest(options));
  request->rounds = options.Integer("rounds", 1);
  request->tokens = static_cast<int64_t>(request->x.size()) / request->width;
  if (request->width % request->format->group != 0 || request->tokens < 1 ||
      static_cast<int64_t>(request->x.size()) != request->tokens * request->width ||
      static_cast<int64_t>(request->weights.size()) != request->rows * request->format->row_bytes(request->width))
    RefuseField(info.Env(), "weights", "whole rows of `width` values, as x has");
  return AsyncTask::Run(
      info.Env(),
      [request] {
        Multiply(*request);
        return request;
      },
      [](Napi::Env env, const std::shared_ptr<ProductRequest>& request) {
        return ObjectOf(env, "y", request->y, "weights", request->weights, "seconds", request->seconds);
      });
}

// packedExperts({ kernels, type, width, rows, weights, ids, used, x, threads }) -> Promise<y>. weights: (experts, rows, width); ids:
// (tokens, used) experts; x: (tokens, 1 or used, width); y: (tokens, used, rows).
Napi::Value PackedExperts(const Napi::CallbackInfo& info) {
  const Fields options(info[0]);
  auto request = std::make_shared<ProductRequest>(ReadRequest(options));
  request->ids = ReadVector<int32_t>(options["ids"], "ids");
  request->used = options.Integer("used", 1);
  request->tokens = static_cast<int64_t>(request->ids.size()) / request->used;
  const auto expert_bytes = static_cast<size_t>(request->rows * request->format->row_bytes(request->width));
  request->experts = static_cast<int64_t>(request->weights.size() / expert_bytes);
  const size_t x = static_cast<size_t>(request->tokens * request->width);
  if (request->width % request->format->group != 0 || request->weights.size() % expert_bytes != 0 || x == 0 ||
      (request->x.size() != x && request->x.size() != x * static_cast<size_t>(request->used)))
    RefuseField(info.Env(), "weights", "whole rows of `width` values, as x has");
  for (const int32_t id : request->ids)
    if (id < 0 || id >= request->experts) RefuseField(info.Env(), "ids", "experts of weights");
  return AsyncTask::Run(
      info.Env(),
      [request] {
        MultiplyExperts(*request);
        return request->y;
      },
      ToArray<float>);
}

}  // namespace

void RegisterMatmulTests(Napi::Env env, Napi::Object exports) {
  exports.Set("matmulKernels", Napi::Function::New(env, MatmulKernels));
  exports.Set("packedMatmul", Napi::Function::New(env, PackedMatmul));
  exports.Set("packedExperts", Napi::Function::New(env, PackedExperts));
}

}  // namespace onpolicy
