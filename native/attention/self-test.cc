#include "attention/self-test.h"

#include <cmath>

#include "attention/hook.h"

namespace onpolicy::attention {
namespace {

constexpr int64_t kCells = 1280;  // more than a span
constexpr int64_t kStateSize = 32;
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
    if (!Agree([&](bool is_ours) { return Attention(test, is_ours, backend); })) problem = "attention of width " + std::to_string(test.width) + " differs from the engine's";
  for (const int64_t tokens : {1, 37}) {
    for (const int64_t gates : {int64_t{1}, kStateSize})
      if (!Agree([&](bool is_ours) { return DeltaNet(tokens, gates, is_ours, backend); })) problem = "a delta net differs from the engine's";
    if (!Agree([&](bool is_ours) { return Convolution(tokens, is_ours, backend); })) problem = "a convolution differs from the engine's";
  }
  engine_.ggml_backend_free(backend);
  return problem;
}

template <typename Compute>
bool SelfTest::Agree(const Compute& compute) {
  const std::vector<float> expected = compute(/*is_ours=*/false), got = compute(/*is_ours=*/true);
  double error = 0, size = 0;
  for (size_t i = 0; i < expected.size() && i < got.size(); ++i) {
    error += (got[i] - expected[i]) * (got[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  return got.size() == expected.size() && size > 0 && error < kTolerance * kTolerance * size;
}

ggml_context* SelfTest::Context() const {
  return engine_.ggml_init({8 * engine_.ggml_tensor_overhead() + engine_.ggml_graph_overhead(), nullptr, /*no_alloc=*/true});
}

// (tokens, heads, width)
std::vector<float> SelfTest::Attention(const Case& test, bool is_ours, ggml_backend_t backend) const {
  ggml_context* context = Context();
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
  const std::vector<float> numbers = Numbers(test.width * (kCells + 1) * (test.heads + 1));
  const auto cells = [&](int64_t from) {
    std::vector<uint8_t> bytes(engine_.ggml_nbytes(k));
    engine_.ggml_quantize_chunk(test.type, numbers.data() + from, bytes.data(), 0, kCells * test.kv_heads, test.width, nullptr);
    return bytes;
  };
  const std::vector<uint8_t> keys = cells(0), values = cells(test.width + 3);
  std::vector<uint16_t> seen(static_cast<size_t>(kCells * test.tokens), kHidden);
  for (int64_t token = 0; token < test.tokens; ++token)
    for (int64_t cell = 0; cell <= kCells - 100 + token; ++cell)
      if (!test.is_shared || cell < 200 || cell % test.tokens == token) seen[static_cast<size_t>(token * kCells + cell)] = 0;
  return Result(context, y,
                {{q, numbers.data() + 7}, {k, keys.data()}, {v, values.data()}, {mask, seen.data()}, {sinks, numbers.data() + 5}},
                is_ours, backend);
}

// Two sequences of more heads of values than of keys, and two states of each. `gates`: of a token and head.
std::vector<float> SelfTest::DeltaNet(int64_t tokens, int64_t gates, bool is_ours, ggml_backend_t backend) const {
  constexpr int64_t kHeads = 4, kSequences = 2, kStates = 2;
  ggml_context* context = Context();
  const auto make = [&](int64_t size, int64_t heads, int64_t count) {
    return engine_.ggml_new_tensor_4d(context, GGML_TYPE_F32, size, heads, count, kSequences);
  };
  ggml_tensor *q = make(kStateSize, kHeads / 2, tokens), *k = make(kStateSize, kHeads / 2, tokens), *v = make(kStateSize, kHeads, tokens);
  ggml_tensor *gate = make(gates, kHeads, tokens), *beta = make(1, kHeads, tokens), *state = make(kStateSize, kStateSize, kHeads);
  ggml_tensor* y = engine_.ggml_gated_delta_net(context, q, k, v, gate, beta, state, tokens < kStates ? 1 : kStates);
  std::vector<float> numbers = Numbers(kStateSize * kStateSize * kHeads * kSequences + kStateSize * kHeads * tokens * kSequences);
  for (float& number : numbers) number *= 0.25f;  // keys of about size 1, below which states stay small
  std::vector<float> decays = numbers;
  for (float& number : decays) number = number - 0.25f;
  return Result(context, y,
                {{q, numbers.data() + 7}, {k, numbers.data() + 3}, {v, numbers.data()}, {gate, decays.data()}, {beta, numbers.data() + 5},
                 {state, numbers.data() + 1}},
                is_ours, backend);
}

std::vector<float> SelfTest::Convolution(int64_t tokens, bool is_ours, ggml_backend_t backend) const {
  constexpr int64_t kTaps = 4, kChannels = 37, kSequences = 2;
  ggml_context* context = Context();
  ggml_tensor* x = engine_.ggml_new_tensor_4d(context, GGML_TYPE_F32, tokens + kTaps - 1, kChannels, kSequences, 1);
  ggml_tensor* weights = engine_.ggml_new_tensor_2d(context, GGML_TYPE_F32, kTaps, kChannels);
  ggml_tensor* y = engine_.ggml_ssm_conv(context, x, weights);
  const std::vector<float> numbers = Numbers((tokens + kTaps) * kChannels * kSequences);
  return Result(context, y, {{x, numbers.data()}, {weights, numbers.data() + 9}}, is_ours, backend);
}

std::vector<float> SelfTest::Result(ggml_context* context, ggml_tensor* y, const Inputs& inputs, bool is_ours,
                                    ggml_backend_t backend) const {
  std::vector<ggml_backend_buffer_t> buffers;
  const auto place = [&](ggml_tensor* tensor) {
    buffers.push_back(engine_.ggml_backend_buft_alloc_buffer(engine_.ggml_backend_cpu_buffer_type(),
                                                             engine_.ggml_nbytes(tensor) + 4096));
    engine_.ggml_backend_tensor_alloc(buffers.back(), tensor, engine_.ggml_backend_buffer_get_base(buffers.back()));
  };
  place(y);
  for (const auto& [tensor, data] : inputs) {
    place(tensor);
    engine_.ggml_backend_tensor_set(tensor, data, 0, engine_.ggml_nbytes(tensor));
  }
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
