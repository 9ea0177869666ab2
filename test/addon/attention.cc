// Kernels of attention and of adapters for JavaScript: which there are, and one computation by each of them, to check them.
#include "kernels/attention/attention.h"

#include <napi.h>

#include <bit>
#include <cmath>

#include "./entry.h"
#include "./kernel-sets.h"
#include "addon/arguments.h"

namespace onpolicy {
namespace {

namespace at = attention;

// attentionKernels() -> the names of the kernels that this processor runs, the fastest first.
Napi::Value AttentionKernels(const Napi::CallbackInfo& info) { return SupportedSets(info.Env(), at::kAllKernels); }

const at::Kernels& AttentionKernelsOf(const Fields& options) { return *ReadKernels(options, at::kAllKernels, "attentionKernels()"); }

// attend({ kernels, type, width, heads, kvHeads, firstToken, window, sees, positions, cap, sinks, q, k, v, threads }) -> y, (tokens, heads, width). type: 0 for F16, 1 for
// Q8_0, 2 for F32; q: (tokens, heads, width); k, v: bytes of (cells, kv heads, width) in it.
Napi::Value Attend(const Napi::CallbackInfo& info) {
  const Fields options(info[0]);
  constexpr size_t kBytesOf32[] = {64, 34, 128};  // 32 numbers of each type
  const at::Kernels& kernels = AttentionKernelsOf(options);
  const auto type = options.Integer<size_t>("type", 0, 2);
  const auto width = options.Integer<size_t>("width", 32, 1024);
  const auto q = ReadVector<float>(options["q"], "q");
  const auto k = ReadVector<uint8_t>(options["k"], "k"), v = ReadVector<uint8_t>(options["v"], "v");
  at::Attention a{};
  a.heads = options.Integer<int64_t>("heads", 1);
  a.kv_heads = options.Integer<int64_t>("kvHeads", 1);
  const size_t head_bytes = width / 32 * kBytesOf32[type], cell_bytes = head_bytes * static_cast<size_t>(a.kv_heads);
  const size_t token_numbers = width * static_cast<size_t>(a.heads);
  a.tokens = static_cast<int64_t>(q.size() / token_numbers);
  a.cells = static_cast<int64_t>(k.size() / cell_bytes);
  if (width % 32 != 0 || a.heads % a.kv_heads != 0 || a.tokens == 0 || q.size() % token_numbers != 0)
    RefuseField(info.Env(), "q", "whole tokens of heads that share keys evenly, 32 numbers or a multiple wide");
  if (a.cells == 0 || a.cells % at::kBlockCells != 0 || k.size() != v.size() || k.size() % cell_bytes != 0)
    RefuseField(info.Env(), "k", "blocks of 64 cells, as many as v has");
  a.q = reinterpret_cast<const uint8_t*>(q.data());
  a.k = k.data(), a.v = v.data();
  a.q_token = token_numbers * sizeof(float), a.q_head = width * sizeof(float);
  a.k_cell = a.v_cell = cell_bytes, a.k_head = a.v_head = head_bytes;
  a.streams = 1;
  a.k_width = a.v_width = static_cast<int>(width);
  a.type = static_cast<at::CellType>(type);
  a.scale = 1 / std::sqrt(static_cast<float>(width));
  a.cap = static_cast<float>(options.Number("cap"));
  const auto sinks = ReadVector<float>(options["sinks"], "sinks");
  if (!sinks.empty() && static_cast<int64_t>(sinks.size()) != a.heads) RefuseField(info.Env(), "sinks", "one of each head, or none");
  if (!sinks.empty()) a.sinks = sinks.data();
  a.sight = {options.Integer<int64_t>("firstToken", 0, a.cells - a.tokens), options.Integer<int64_t>("window")};
  const auto sees = ReadVector<uint8_t>(options["sees"], "sees");
  const auto positions = ReadVector<int32_t>(options["positions"], "positions");
  const auto cells = static_cast<size_t>(a.cells), tokens = static_cast<size_t>(a.tokens);
  if ((!sees.empty() && sees.size() != tokens * cells) || (!positions.empty() && positions.size() != cells))
    RefuseField(info.Env(), "sees", "tokens times cells, and a position for each cell, or none");
  constexpr uint16_t kMinusInfinity = 0xFC00;  // a 16-bit float
  std::vector<uint16_t> mask(sees.size());
  for (size_t i = 0; i < sees.size(); ++i) mask[i] = sees[i] ? 0 : kMinusInfinity;
  if (!sees.empty()) a.mask = reinterpret_cast<const uint8_t*>(mask.data());
  if (!positions.empty()) a.positions = positions.data();
  a.mask_token = cells * sizeof(uint16_t);
  std::vector<float> y(q.size());
  a.y = y.data();
  const at::Plan plan(a, options.Integer("threads", 1, 64));
  std::vector<float> work(plan.work_bytes() / sizeof(float) + 16);
  auto* memory = reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(work.data()) + 63) / 64 * 64);
  for (int64_t task = 0; task < plan.tasks(); ++task) plan.Run(kernels, task, 0, memory);
  for (int64_t merge = 0; merge < plan.merges(); ++merge) plan.Merge(merge, memory);
  return ToArray(info.Env(), y);
}

// lowRank({ kernels, in, rank, out, a, b, x }) -> b (a x), (tokens, out). a: (rank, in); b: (rank, out), columns of b; x: (tokens, in).
Napi::Value LowRank(const Napi::CallbackInfo& info) {
  const Fields options(info[0]);
  const at::Kernels& kernels = AttentionKernelsOf(options);
  const auto in = options.Integer<size_t>("in", 1), rank = options.Integer<size_t>("rank", 1), out = options.Integer<size_t>("out", 1);
  const auto a = ReadVector<float>(options["a"], "a"), b = ReadVector<float>(options["b"], "b"), x = ReadVector<float>(options["x"], "x");
  if (in % at::kLanes != 0 || out % at::kLanes != 0 || a.size() != in * rank || b.size() != rank * out || x.size() % in != 0)
    RefuseField(info.Env(), "a", "factors of sizes that are multiples of 16");
  const size_t tokens = x.size() / in;
  std::vector<float> low(tokens * rank), y(tokens * out);
  kernels.narrow(a.data(), static_cast<int64_t>(in), static_cast<int>(rank), {x.data(), in, static_cast<int64_t>(tokens)}, low.data(), rank);
  for (size_t strip = 0; strip < out; strip += at::kLanes)
    kernels.widen(b.data() + strip, out, static_cast<int64_t>(rank), {low.data(), rank, static_cast<int64_t>(tokens)}, y.data() + strip, out);
  return ToArray(info.Env(), y);
}

// deltaNet({ kernels, size, q, k, v, gates, beta, state }) -> y, (tokens, size), then the state after the last token, (size, size). q, k, v:
// (tokens, size); gates: (tokens, 1 or size); beta: (tokens).
Napi::Value DeltaNet(const Napi::CallbackInfo& info) {
  const Fields options(info[0]);
  const at::Kernels& kernels = AttentionKernelsOf(options);
  const auto size = options.Integer<size_t>("size", 16, 128);
  const auto q = ReadVector<float>(options["q"], "q"), k = ReadVector<float>(options["k"], "k"), v = ReadVector<float>(options["v"], "v");
  const auto gates = ReadVector<float>(options["gates"], "gates"), beta = ReadVector<float>(options["beta"], "beta");
  const auto state = ReadVector<float>(options["state"], "state");
  const size_t tokens = beta.size();
  if (!std::has_single_bit(size) || tokens == 0 || tokens > at::kDeltaTokens || state.size() != size * size)
    RefuseField(info.Env(), "size", "a power of 2, that of the state, and of 1 to 32 tokens");
  for (const auto& vectors : {q, k, v})
    if (vectors.size() != tokens * size) RefuseField(info.Env(), "q", "as many numbers as k and v, `size` for each of beta");
  if (gates.size() != tokens && gates.size() != tokens * size) RefuseField(info.Env(), "gates", "one or `size` for each of beta");
  std::vector<float> factors(tokens * size), result((tokens + size) * size);
  at::DeltaRows delta{};
  delta.size = delta.rows = static_cast<int>(size);
  delta.tokens = static_cast<int>(tokens);
  delta.q = {q.data(), size}, delta.k = {k.data(), size}, delta.v = {v.data(), size};
  delta.gates = {gates.data(), gates.size() / tokens}, delta.beta = {beta.data(), 1};
  delta.has_gates = gates.size() > tokens;
  delta.scale = 1 / std::sqrt(static_cast<float>(size));
  delta.factors = factors.data();
  delta.from = state.data();
  delta.to = result.data() + tokens * size;
  delta.states = 1;
  delta.y = result.data();
  delta.y_token = size;
  kernels.delta(delta);
  return ToArray(info.Env(), result);
}

// convolve({ kernels, channels, taps, x, weights }) -> y, (tokens, channels). x: (channels, tokens + taps - 1); weights: (channels, taps).
Napi::Value Convolve(const Napi::CallbackInfo& info) {
  const Fields options(info[0]);
  const at::Kernels& kernels = AttentionKernelsOf(options);
  const auto channels = options.Integer<size_t>("channels", 1, at::kLanes), taps = options.Integer<size_t>("taps", 1, at::kMostTaps);
  const auto x = ReadVector<float>(options["x"], "x"), weights = ReadVector<float>(options["weights"], "weights");
  const size_t length = x.size() / channels;
  if (x.size() != length * channels || length < taps || weights.size() != channels * taps)
    RefuseField(info.Env(), "x", "channels that are at least as long as their weights");
  std::vector<float> y((length - taps + 1) * channels);
  kernels.convolve({x.data(), length, weights.data(), static_cast<int>(taps), static_cast<int>(channels),
                    static_cast<int64_t>(length - taps + 1), y.data(), channels});
  return ToArray(info.Env(), y);
}

}  // namespace

void RegisterAttentionTests(Napi::Env env, Napi::Object exports) {
  exports.Set("attentionKernels", Napi::Function::New(env, AttentionKernels));
  exports.Set("attend", Napi::Function::New(env, Attend));
  exports.Set("lowRank", Napi::Function::New(env, LowRank));
  exports.Set("deltaNet", Napi::Function::New(env, DeltaNet));
  exports.Set("convolve", Napi::Function::New(env, Convolve));
}

}  // namespace onpolicy
