// Settings as key=value words -> a line of JSON for each case: seconds of attention by our kernels and by ggml's own, in turns.
#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine-assumptions/attention/hook.h"
#include "engine-assumptions/matmul/buffer-type.h"
#include "engine-assumptions/matmul/hook.h"

namespace {

constexpr int64_t kCellsRounded = 256;
constexpr uint16_t kHidden = 0xFC00;

[[noreturn]] void Fail(const std::string& message) {
  std::fprintf(stderr, "attention: %s\n", message.c_str());
  std::exit(1);
}

double Seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The heads of a layer.
struct Shape {
  const char* name;
  int64_t keys, values;     // numbers of a head
  int64_t heads, kv_heads;
  int64_t window = 0;       // cells that a token sees; 0: all
  float cap = 0;            // of scores; 0: none
  bool has_sinks = false;
};

constexpr Shape kUsual = {"", 128, 128, 16, 8};  // of Qwen3-0.6B
constexpr Shape kShapes[] = {
    {"gpt-oss, sinks", 64, 64, 64, 8, 0, 0, true}, {"gpt-oss, sinks and a window", 64, 64, 64, 8, 128, 0, true},
    {"phi-3", 96, 96, 32, 32},                     {"gemma 2, capped", 256, 256, 8, 4, 0, 50},
    {"gemma 3, a window", 256, 256, 8, 4, 512},    {"qwen3.5", 256, 256, 8, 2},
    {"gemma 4, all cells", 512, 512, 8, 2},        {"deepseek 2, latent", 576, 512, 16, 1},
};

struct Case {
  const char* name;
  int64_t streams, tokens, depth;  // tokens of each stream, and what the last of them sees
  int64_t shared;                  // of one pool: cells that all tokens see, the others see their own; 0: causal
};

constexpr Case kCases[] = {
    {"1 sequence at 512", 1, 1, 512, 0},         {"1 sequence at 2,000", 1, 1, 2000, 0},
    {"8 sequences at 128", 8, 1, 128, 0},        {"8 sequences at 512", 8, 1, 512, 0},
    {"8 sequences at 2,000", 8, 1, 2000, 0},     {"16 sequences at 512", 16, 1, 512, 0},
    {"16 sequences at 2,000", 16, 1, 2000, 0},   {"32 sequences at 128", 32, 1, 128, 0},
    {"32 sequences at 512", 32, 1, 512, 0},      {"32 sequences at 2,000", 32, 1, 2000, 0},
    {"16 sequences at 576, 512 shared", 1, 16, 64, 512}, {"16 sequences at 512 in one pool", 1, 16, 512, 1},
    {"prompt, 512 tokens", 1, 512, 512, 0},      {"prompt, tokens 1,488 to 2,000", 1, 512, 2000, 0},
};
constexpr Case kCasesOfShapes[] = {
    {"1 sequence at 512", 1, 1, 512, 0}, {"8 sequences at 2,000", 8, 1, 2000, 0}, {"prompt, 512 tokens", 1, 512, 512, 0},
};

// One node of attention.
class Attention {
 public:
  Attention(ggml_backend_t backend, ggml_backend_buffer_type_t type, const Shape& shape, const Case& test) : backend_(backend) {
    const int64_t seen = test.shared > 0 ? test.shared + test.tokens * test.depth : test.depth;
    const int64_t cells = (seen + kCellsRounded - 1) / kCellsRounded * kCellsRounded;
    context_ = ggml_init({9 * ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, /*no_alloc=*/true});
    const auto make = [&](ggml_type of, int64_t a, int64_t b, int64_t c) {
      return ggml_new_tensor_4d(context_, of, a, b, c, test.streams);
    };
    // As llama.cpp lays them out: the heads of a token lie together.
    ggml_tensor* q = ggml_permute(context_, make(GGML_TYPE_F32, shape.keys, shape.heads, test.tokens), 0, 2, 1, 3);
    ggml_tensor* k = ggml_permute(context_, make(GGML_TYPE_F16, shape.keys, shape.kv_heads, cells), 0, 2, 1, 3);
    ggml_tensor* v = ggml_permute(context_, make(GGML_TYPE_F16, shape.values, shape.kv_heads, cells), 0, 2, 1, 3);
    ggml_tensor* mask = make(GGML_TYPE_F16, cells, test.tokens, 1);
    ggml_tensor* y = ggml_flash_attn_ext(context_, q, k, v, mask, 1 / std::sqrt(static_cast<float>(shape.keys)), 0, shape.cap);
    ggml_tensor* sinks = shape.has_sinks ? ggml_new_tensor_1d(context_, GGML_TYPE_F32, shape.heads) : nullptr;
    if (sinks) ggml_flash_attn_ext_add_sinks(y, sinks);
    ggml_flash_attn_ext_set_prec(y, GGML_PREC_F32);
    graph_ = ggml_new_graph(context_);
    ggml_build_forward_expand(graph_, y);
    buffer_ = ggml_backend_alloc_ctx_tensors_from_buft(context_, type);
    std::vector<float> numbers(static_cast<size_t>(shape.keys * shape.heads * std::max(cells, test.tokens) * test.streams));
    uint32_t state = 1;
    for (float& number : numbers) {
      state = state * 1664525u + 1013904223u;
      number = static_cast<float>(state >> 8) * 0x1p-23f - 1;
    }
    std::vector<ggml_fp16_t> halves(numbers.size());
    ggml_fp32_to_fp16_row(numbers.data(), halves.data(), static_cast<int64_t>(halves.size()));
    ggml_backend_tensor_set(q->view_src, numbers.data(), 0, ggml_nbytes(q));
    ggml_backend_tensor_set(k->view_src, halves.data(), 0, ggml_nbytes(k));
    ggml_backend_tensor_set(v->view_src, halves.data() + 1000, 0, ggml_nbytes(v));
    if (sinks) ggml_backend_tensor_set(sinks, numbers.data(), 0, ggml_nbytes(sinks));
    std::vector<uint16_t> hidden(static_cast<size_t>(cells * test.tokens * test.streams), kHidden);
    for (int64_t row = 0; row < test.tokens * test.streams; ++row)
      for (int64_t cell = 0; cell < seen; ++cell) {
        const int64_t token = row % test.tokens;
        const int64_t last = test.depth - test.tokens + token;
        const bool sees = test.shared > 0 ? cell < test.shared || cell % test.tokens == token : cell <= last;
        if (sees && (shape.window == 0 || cell > last - shape.window)) hidden[static_cast<size_t>(row * cells + cell)] = 0;
      }
    ggml_backend_tensor_set(mask, hidden.data(), 0, ggml_nbytes(mask));
  }
  Attention(const Attention&) = delete;
  ~Attention() {
    ggml_backend_buffer_free(buffer_);
    ggml_free(context_);
  }

  void Run(bool is_ours) {
    const onpolicy::attention::Scope scope(is_ours);
    if (ggml_backend_graph_compute(backend_, graph_) != GGML_STATUS_SUCCESS) Fail("the graph failed");
  }

 private:
  ggml_backend_t backend_;
  ggml_context* context_;
  ggml_cgraph* graph_;
  ggml_backend_buffer_t buffer_;
};

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> settings;
  for (int i = 1; i < argc; i++) {
    const char* equals = std::strchr(argv[i], '=');
    if (!equals) Fail(std::string("expected key=value, got ") + argv[i]);
    settings[std::string(argv[i], equals - argv[i])] = equals + 1;
  }
  const int threads = std::atoi(settings["threads"].c_str()), rounds = std::atoi(settings["rounds"].c_str());
  const double least = std::atof(settings["seconds"].c_str());  // of a turn
  ggml_backend_load_all_from_path(settings["libraries"].c_str());
  ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  if (!cpu) Fail("no CPU backend");
#define ONPOLICY_LINK(name) onpolicy::g_library.name.Set(reinterpret_cast<void*>(::name), #name);
  ONPOLICY_LIBRARY_FUNCTIONS(ONPOLICY_LINK)
  ONPOLICY_FREEING_FUNCTIONS(ONPOLICY_LINK)
  std::string problem;
  const auto* products = onpolicy::matmul::BestKernels();
  if (!products || !onpolicy::matmul::Hook(cpu, onpolicy::matmul::MakeBufferType(cpu, *products), &problem)) Fail("no kernels: " + problem);
  ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(cpu);
  const auto find = [&](const char* name) { return ggml_backend_reg_get_proc_address(reg, name); };
  auto& set_threads = onpolicy::g_library.ggml_backend_set_n_threads;
  set_threads.Set(find("ggml_backend_set_n_threads"), "ggml_backend_set_n_threads");
  onpolicy::attention::Install(cpu);
  const char* const installed = onpolicy::attention::Installed();
  if (!installed) Fail("none of our kernels");
  ggml_backend_t backend = ggml_backend_dev_init(cpu, nullptr);
  ggml_threadpool_params params = ggml_threadpool_params_default(threads);
  set_threads(backend, threads);
  reinterpret_cast<decltype(&ggml_backend_cpu_set_threadpool)>(find("ggml_backend_cpu_set_threadpool"))(
      backend, reinterpret_cast<decltype(&ggml_threadpool_new)>(find("ggml_threadpool_new"))(&params));
  std::vector<std::pair<const Shape*, const Case*>> runs;
  for (const Case& test : kCases) runs.emplace_back(&kUsual, &test);
  for (const Shape& shape : kShapes)
    for (const Case& test : kCasesOfShapes) runs.emplace_back(&shape, &test);
  for (const auto& [shape, test] : runs) {
    Attention attention(backend, ggml_backend_dev_buffer_type(cpu), *shape, *test);
    std::printf("{\"kernels\":\"%s\",\"case\":\"%s%s%s\",\"turns\":[", installed, shape->name, *shape->name ? ": " : "",
                test->name);
    for (int round = 0; round < rounds; ++round) {
      double each[2];
      for (const bool is_ours : {true, false}) {
        int times = 0;
        double seconds = 0;
        attention.Run(is_ours);
        for (; seconds < least; ++times) seconds += Seconds([&] { attention.Run(is_ours); });
        each[is_ours ? 0 : 1] = seconds / times;
      }
      std::printf("%s{\"ours\":%.4g,\"ggml\":%.4g}", round ? "," : "", each[0], each[1]);
    }
    std::printf("]}\n");
    std::fflush(stdout);
  }
  return 0;
}
