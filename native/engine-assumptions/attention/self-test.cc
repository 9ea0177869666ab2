#include "engine-assumptions/attention/self-test.h"

#include <cmath>
#include <vector>

#include "engine-assumptions/attention/hook.h"
#include "engine-assumptions/matmul/self-test.h"

namespace onpolicy::attention {
namespace {

using matmul::TestGraph, matmul::TestNumbers;

constexpr int64_t kCells = 1280;  // more than a span
constexpr int64_t kStateSize = 32;
constexpr uint16_t kHidden = 0xFC00;

struct AttentionCase {
  ggml_type type;
  int64_t tokens, heads, kv_heads, width;
  bool is_shared;  // cells of some tokens lie between those of others
  float cap = 0;   // soft cap of scores; 0: none
  bool has_sinks = false;
};

// (tokens, heads, width)
std::vector<float> Attend(const AttentionCase& test, TestGraph& graph) {
  const std::vector<float> numbers = TestNumbers(test.width * (kCells + 1) * (test.heads + 1));
  const auto cells = [&](int64_t from) {
    std::vector<uint8_t> bytes(static_cast<size_t>(kCells * test.kv_heads) * Api().ggml_row_size(test.type, test.width));
    Api().ggml_quantize_chunk(test.type, numbers.data() + from, bytes.data(), 0, kCells * test.kv_heads, test.width, nullptr);
    return graph.Input(test.type, {test.width, kCells, test.kv_heads, 1}, bytes.data());
  };
  std::vector<uint16_t> seen(static_cast<size_t>(kCells * test.tokens), kHidden);
  for (int64_t token = 0; token < test.tokens; ++token)
    for (int64_t cell = 0; cell <= kCells - 100 + token; ++cell)
      if (!test.is_shared || cell < 200 || cell % test.tokens == token) seen[static_cast<size_t>(token * kCells + cell)] = 0;
  ggml_tensor* q = graph.Input(GGML_TYPE_F32, {test.width, test.tokens, test.heads, 1}, numbers.data() + 7);
  ggml_tensor *k = cells(0), *v = cells(test.width + 3);
  ggml_tensor* mask = graph.Input(GGML_TYPE_F16, {kCells, test.tokens, 1, 1}, seen.data());
  const float scale = 4 / std::sqrt(static_cast<float>(test.width));
  ggml_tensor* y = Api().ggml_flash_attn_ext(graph.context(), q, k, v, mask, scale, 0, test.cap);
  if (test.has_sinks)
    Api().ggml_flash_attn_ext_add_sinks(y, graph.Input(GGML_TYPE_F32, {test.heads, 1, 1, 1}, numbers.data() + 5));
  return graph.Compute(y);
}

// Computes two sequences with more heads of values than of keys, and two states of each. `gates`: gates per token and head.
std::vector<float> DeltaNet(int64_t tokens, int64_t gates, TestGraph& graph) {
  constexpr int64_t kHeads = 4, kSequences = 2, kStates = 2;
  std::vector<float> numbers = TestNumbers(kStateSize * kStateSize * kHeads * kSequences + kStateSize * kHeads * tokens * kSequences);
  for (float& number : numbers) number *= 0.25f;  // keys of about size 1, below which states stay small
  std::vector<float> decays = numbers;
  for (float& number : decays) number = number - 0.25f;
  const auto make = [&](int64_t size, int64_t heads, int64_t count, const float* data) {
    return graph.Input(GGML_TYPE_F32, {size, heads, count, kSequences}, data);
  };
  ggml_tensor* y = Api().ggml_gated_delta_net(
      graph.context(), make(kStateSize, kHeads / 2, tokens, numbers.data() + 7), make(kStateSize, kHeads / 2, tokens, numbers.data() + 3),
      make(kStateSize, kHeads, tokens, numbers.data()), make(gates, kHeads, tokens, decays.data()),
      make(1, kHeads, tokens, numbers.data() + 5), make(kStateSize, kStateSize, kHeads, numbers.data() + 1), tokens < kStates ? 1 : kStates);
  return graph.Compute(y);
}

std::vector<float> Convolve(int64_t tokens, TestGraph& graph) {
  constexpr int64_t kTaps = 4, kChannels = 37, kSequences = 2;
  const std::vector<float> numbers = TestNumbers((tokens + kTaps) * kChannels * kSequences);
  ggml_tensor* x = graph.Input(GGML_TYPE_F32, {tokens + kTaps - 1, kChannels, kSequences, 1}, numbers.data());
  ggml_tensor* weights = graph.Input(GGML_TYPE_F32, {kTaps, kChannels, 1, 1}, numbers.data() + 9);
  return graph.Compute(Api().ggml_ssm_conv(graph.context(), x, weights));
}

// Returns true if `compute` gives about the same with the engine's kernels and with ours. `counts` receives the nodes computed with ours.
template <typename Compute>
bool Agrees(ggml_backend_dev_t cpu, NodeCounts* counts, const Compute& compute) {
  const auto result = [&](bool is_ours) {
    const Scope scope(is_ours, nullptr, is_ours ? counts : nullptr);
    TestGraph graph(cpu);
    return compute(graph);
  };
  return matmul::AreAlike(result(false), result(true));
}

}  // namespace

std::string SelfTestProblem(ggml_backend_dev_t cpu) {
  NodeCounts counts;
  for (const AttentionCase& test :
       {AttentionCase{GGML_TYPE_F16, 1, 4, 2, 64, false}, AttentionCase{GGML_TYPE_F16, 21, 6, 2, 80, false},
        AttentionCase{GGML_TYPE_F16, 3, 4, 4, 128, true}, AttentionCase{GGML_TYPE_Q8_0, 3, 4, 2, 64, false},
        AttentionCase{GGML_TYPE_F16, 2, 4, 2, 256, false, 2}, AttentionCase{GGML_TYPE_F16, 3, 4, 2, 64, false, 0, true}})
    if (!Agrees(cpu, &counts, [&](TestGraph& graph) { return Attend(test, graph); }))
      return "attention of width " + std::to_string(test.width) + " differs from the engine's";
  for (const int64_t tokens : {1, 37}) {
    for (const int64_t gates : {int64_t{1}, kStateSize})
      if (!Agrees(cpu, &counts, [&](TestGraph& graph) { return DeltaNet(tokens, gates, graph); })) return "a delta net differs from the engine's";
    if (!Agrees(cpu, &counts, [&](TestGraph& graph) { return Convolve(tokens, graph); })) return "a convolution differs from the engine's";
  }
  const bool is_asked = counts.attention > 0 && counts.own_attention == counts.attention && counts.rules > 0;
  return is_asked ? "" : "the engine does not compute attention and delta nets through this library";
}

}  // namespace onpolicy::attention
