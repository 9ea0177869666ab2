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
#include <vector>

#include "attention/hook.h"
#include "matmul/buffer-type.h"

namespace {

constexpr int64_t kWidth = 128, kHeads = 16, kKvHeads = 8;  // of Qwen3-0.6B
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

// One node of attention.
class Attention {
 public:
  Attention(ggml_backend_t backend, ggml_backend_buffer_type_t type, const Case& test) : backend_(backend) {
    const int64_t seen = test.shared > 0 ? test.shared + test.tokens * test.depth : test.depth;
    const int64_t cells = (seen + kCellsRounded - 1) / kCellsRounded * kCellsRounded;
    context_ = ggml_init({8 * ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, /*no_alloc=*/true});
    const auto make = [&](ggml_type of, int64_t a, int64_t b, int64_t c) {
      return ggml_new_tensor_4d(context_, of, a, b, c, test.streams);
    };
    // As llama.cpp lays them out: the heads of a token lie together.
    ggml_tensor* q = ggml_permute(context_, make(GGML_TYPE_F32, kWidth, kHeads, test.tokens), 0, 2, 1, 3);
    ggml_tensor* k = ggml_permute(context_, make(GGML_TYPE_F16, kWidth, kKvHeads, cells), 0, 2, 1, 3);
    ggml_tensor* v = ggml_permute(context_, make(GGML_TYPE_F16, kWidth, kKvHeads, cells), 0, 2, 1, 3);
    ggml_tensor* mask = make(GGML_TYPE_F16, cells, test.tokens, 1);
    ggml_tensor* y = ggml_flash_attn_ext(context_, q, k, v, mask, 1 / std::sqrt(float{kWidth}), 0, 0);
    ggml_flash_attn_ext_set_prec(y, GGML_PREC_F32);
    graph_ = ggml_new_graph(context_);
    ggml_build_forward_expand(graph_, y);
    buffer_ = ggml_backend_alloc_ctx_tensors_from_buft(context_, type);
    std::vector<float> numbers(static_cast<size_t>(kWidth * kHeads * std::max(cells, test.tokens) * test.streams));
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
    std::vector<uint16_t> hidden(static_cast<size_t>(cells * test.tokens * test.streams), kHidden);
    for (int64_t row = 0; row < test.tokens * test.streams; ++row)
      for (int64_t cell = 0; cell < seen; ++cell) {
        const int64_t token = row % test.tokens;
        const bool sees = test.shared > 0 ? cell < test.shared || cell % test.tokens == token
                                          : cell <= test.depth - test.tokens + token;
        if (sees) hidden[static_cast<size_t>(row * cells + cell)] = 0;
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
  onpolicy::matmul::EngineFunctions functions;
  std::string problem;
  const auto* products = onpolicy::matmul::BestKernels();
  if (!products || !onpolicy::matmul::FindEngineFunctions(cpu, &functions, &problem)) Fail("no kernels: " + problem);
  auto& types = functions.extra_buffer_types();
  types.insert(types.begin(), onpolicy::matmul::MakeBufferType(cpu, functions, *products));
  const auto& installed = onpolicy::attention::Install(cpu);
  if (!installed.kernels) Fail("none of our kernels: " + installed.problem);
  ggml_backend_t backend = ggml_backend_dev_init(cpu, nullptr);
  ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(cpu);
  const auto find = [&](const char* name) { return ggml_backend_reg_get_proc_address(reg, name); };
  ggml_threadpool_params params = ggml_threadpool_params_default(threads);
  reinterpret_cast<ggml_backend_set_n_threads_t>(find("ggml_backend_set_n_threads"))(backend, threads);
  reinterpret_cast<decltype(&ggml_backend_cpu_set_threadpool)>(find("ggml_backend_cpu_set_threadpool"))(
      backend, reinterpret_cast<decltype(&ggml_threadpool_new)>(find("ggml_threadpool_new"))(&params));
  for (const Case& test : kCases) {
    Attention attention(backend, ggml_backend_dev_buffer_type(cpu), test);
    std::printf("{\"kernels\":\"%s\",\"case\":\"%s\",\"turns\":[", installed.kernels, test.name);
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
