// Settings as key=value words -> a line of JSON for each matmul: seconds of our kernels and of ggml's own, in turns, with weights
// that no cache holds. Before them the machine's bounds: 8-bit dot products from registers, and bytes read from memory.
#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>
#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "engine-assumptions/matmul/buffer-type.h"
#include "engine-assumptions/matmul/hook.h"

namespace {

namespace np = onpolicy::matmul;
using Clock = std::chrono::steady_clock;

constexpr size_t kColdBytes = size_t{96} << 20;  // more than caches hold
constexpr int64_t kFewTokens = 32;               // that read cold weights; more of them reuse what they read
constexpr std::chrono::milliseconds kPoolSleeps(200);  // threads of ggml's pool spin for less after a graph

[[noreturn]] void Fail(const std::string& message) {
  std::fprintf(stderr, "matmuls: %s\n", message.c_str());
  std::exit(1);
}

double Seconds(const std::function<void()>& work) {
  const Clock::time_point start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::map<std::string, std::string> ReadSettings(int argc, char** argv) {
  std::map<std::string, std::string> settings;
  for (int i = 1; i < argc; i++) {
    const char* equals = std::strchr(argv[i], '=');
    if (!equals) Fail(std::string("expected key=value, got ") + argv[i]);
    settings[std::string(argv[i], equals - argv[i])] = equals + 1;
  }
  return settings;
}

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
  return words;
}

// ggml's CPU backend with a thread pool that lives on.
class Engine {
 public:
  Engine(const std::string& libraries, int threads, const np::Kernels& kernels) {
    ggml_backend_load_all_from_path(libraries.c_str());
    cpu_ = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (!cpu_) Fail("no CPU backend");
#define ONPOLICY_LINK(name) onpolicy::g_library.name.Set(reinterpret_cast<void*>(::name), #name);
    ONPOLICY_LIBRARY_FUNCTIONS(ONPOLICY_LINK)
    ONPOLICY_FREEING_FUNCTIONS(ONPOLICY_LINK)
    ours_ = np::MakeBufferType(cpu_, kernels);
    std::string problem;
    if (!np::Hook(cpu_, ours_, &problem)) Fail("no matmuls of our own: " + problem);
    backend_ = ggml_backend_dev_init(cpu_, nullptr);
    ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(cpu_);
    const auto find = [&](const char* name) { return ggml_backend_reg_get_proc_address(reg, name); };
    ggml_threadpool_params params = ggml_threadpool_params_default(threads);
    const auto create = reinterpret_cast<decltype(&ggml_threadpool_new)>(find("ggml_threadpool_new"));
    const auto use = reinterpret_cast<decltype(&ggml_backend_cpu_set_threadpool)>(find("ggml_backend_cpu_set_threadpool"));
    if (!create || !use) Fail("the CPU backend offers no thread pool");
    use(backend_, create(&params));
    reinterpret_cast<ggml_backend_set_n_threads_t>(find("ggml_backend_set_n_threads"))(backend_, threads);
    const auto types = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(find("ggml_backend_dev_get_extra_bufts"));
    for (auto* type = types ? types(cpu_) : nullptr; type && *type; ++type)
      if (*type != ours_) own_ = *type;
  }

  ggml_backend_t backend() const { return backend_; }
  ggml_backend_buffer_type_t ours() const { return ours_; }
  ggml_backend_buffer_type_t plain() const { return ggml_backend_dev_buffer_type(cpu_); }
  // ggml's own packed weights; null where it has none.
  ggml_backend_buffer_type_t packed() const { return own_; }
  bool supports(ggml_tensor* op) const { return ggml_backend_dev_supports_op(cpu_, op); }

 private:
  ggml_backend_dev_t cpu_ = nullptr;
  ggml_backend_t backend_ = nullptr;
  ggml_backend_buffer_type_t ours_ = nullptr, own_ = nullptr;
};

// Matmuls of several matrices of one shape with the same activations, as one graph.
class Matmuls {
 public:
  Matmuls(const Engine& engine, bool is_ours, ggml_type type, int64_t width, int64_t rows, int64_t tokens) : engine_(engine) {
    const size_t bytes = ggml_row_size(type, width) * static_cast<size_t>(rows);
    const size_t count = tokens <= kFewTokens ? kColdBytes / bytes + 1 : 1;
    weights_ = NewContext(count);
    others_ = NewContext(count + 2);
    ggml_tensor* x = ggml_new_tensor_2d(others_, GGML_TYPE_F32, width, tokens);
    graph_ = ggml_new_graph_custom(others_, 2 * count + 8, false);
    ggml_tensor* y = nullptr;
    for (size_t i = 0; i < count; ++i) {
      y = ggml_mul_mat(others_, ggml_new_tensor_2d(weights_, type, width, rows), x);
      ggml_build_forward_expand(graph_, y);
    }
    buffers_[0] = ggml_backend_alloc_ctx_tensors_from_buft(weights_, is_ours ? engine.ours() : OwnType(y));
    buffers_[1] = ggml_backend_alloc_ctx_tensors_from_buft(others_, engine.plain());
    std::vector<float> numbers(static_cast<size_t>(width * std::max(rows, tokens)));
    uint32_t state = 1;
    for (float& number : numbers) {
      state = state * 1664525u + 1013904223u;
      number = static_cast<float>(state >> 8) * 0x1p-23f - 1;
    }
    ggml_backend_tensor_set(x, numbers.data(), 0, ggml_nbytes(x));
    std::vector<uint8_t> weights(bytes);
    ggml_quantize_chunk(type, numbers.data(), weights.data(), 0, rows, width, nullptr);
    for (ggml_tensor* w = ggml_get_first_tensor(weights_); w; w = ggml_get_next_tensor(weights_, w))
      ggml_backend_tensor_set(w, weights.data(), 0, bytes);
    flop_ = 2.0 * static_cast<double>(width * rows * tokens) * static_cast<double>(count);
    bytes_ = static_cast<double>(bytes * count);
    Run();
  }
  Matmuls(const Matmuls&) = delete;
  ~Matmuls() {
    for (ggml_backend_buffer_t buffer : buffers_) ggml_backend_buffer_free(buffer);
    ggml_free(weights_);
    ggml_free(others_);
  }

  void Run() { if (ggml_backend_graph_compute(engine_.backend(), graph_) != GGML_STATUS_SUCCESS) Fail("the graph failed"); }
  double flop() const { return flop_; }
  double bytes() const { return bytes_; }

 private:
  static ggml_context* NewContext(size_t tensors) {
    return ggml_init({tensors * ggml_tensor_overhead() + ggml_graph_overhead_custom(2 * tensors + 8, false), nullptr,
                      /*no_alloc=*/true});
  }

  // As llama.cpp's loader chooses: packed where ggml takes the weight in a buffer of no size.
  ggml_backend_buffer_type_t OwnType(ggml_tensor* y) const {
    if (!engine_.packed()) return engine_.plain();
    ggml_tensor* w = y->src[0];
    w->buffer = ggml_backend_buft_alloc_buffer(engine_.packed(), 0);
    const bool is_packed = engine_.supports(y);
    ggml_backend_buffer_free(w->buffer);
    w->buffer = nullptr;
    return is_packed ? engine_.packed() : engine_.plain();
  }

  const Engine& engine_;
  ggml_context *weights_, *others_;
  ggml_cgraph* graph_;
  ggml_backend_buffer_t buffers_[2];
  double flop_, bytes_;
};

// Returns how often per second all threads together do `work`, counted once all of them have begun.
double RateOnThreads(int threads, const std::function<void(int)>& work) {
  constexpr double kLeastSeconds = 0.05;
  std::atomic<int> begun{0};
  std::vector<double> rates(static_cast<size_t>(threads));
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i)
    all.emplace_back([&, i] {
      work(i);
      for (++begun; begun < threads;) std::this_thread::yield();
      int times = 0;
      double seconds = 0;
      for (; seconds < kLeastSeconds; ++times) seconds += Seconds([&] { work(i); });
      rates[static_cast<size_t>(i)] = times / seconds;
    });
  for (std::thread& thread : all) thread.join();
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

// 8-bit multiplications and additions per second, from registers.
__attribute__((target("avx512f,avx512vnni"))) void DotAvx512(int64_t times) {
  __m512i sums[12] = {};
  const __m512i w = _mm512_set1_epi8(3), x = _mm512_set1_epi8(2);
  for (int64_t i = 0; i < times; ++i)
#pragma GCC unroll 12
    for (__m512i& sum : sums) {
      sum = _mm512_dpbusd_epi32(sum, w, x);
      asm volatile("" : "+v"(sum));
    }
}
__attribute__((target("avx2"))) void DotAvx2(int64_t times) {
  __m256i sums[12] = {};
  __m256i w = _mm256_set1_epi8(3);
  const __m256i x = _mm256_set1_epi8(2), ones = _mm256_set1_epi16(1);
  for (int64_t i = 0; i < times; ++i)
#pragma GCC unroll 12
    for (__m256i& sum : sums) {
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), ones));
      asm volatile("" : "+x"(sum), "+x"(w));
    }
}

double PeakOps(const np::Kernels& kernels, int threads) {
  const bool is_wide = &kernels == &np::kAvx512Kernels;
  constexpr int64_t kTimes = 500'000;
  return 12.0 * kTimes * (is_wide ? 128 : 64) * RateOnThreads(threads, [&](int) { (is_wide ? DotAvx512 : DotAvx2)(kTimes); });
}

// Two streams of memory, as one alone is not enough for all that a thread can read.
__attribute__((target("avx2"))) void ReadAll(const char* from, size_t bytes) {
  __m256i sums[2] = {};
  const size_t half = bytes / 2;
  for (size_t i = 0; i < half; i += 64)
    for (size_t stream : {i, half + i})
#pragma GCC unroll 2
      for (size_t s = 0; s < 2; ++s)
        sums[s] = _mm256_add_epi32(sums[s], _mm256_load_si256(reinterpret_cast<const __m256i*>(from + stream + 32 * s)));
  asm volatile("" ::"x"(sums[0]), "x"(sums[1]));
}

double BytesRead(const char* memory, size_t bytes, int threads) {
  const size_t part = bytes / static_cast<size_t>(threads) / 128 * 128;
  return static_cast<double>(part) * RateOnThreads(threads, [&](int i) { ReadAll(memory + part * static_cast<size_t>(i), part); });
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> settings = ReadSettings(argc, argv);
  const int threads = std::atoi(settings["threads"].c_str()), rounds = std::atoi(settings["rounds"].c_str());
  const double least = std::atof(settings["seconds"].c_str());  // of a turn
  const np::Kernels* kernels = np::BestKernels();
  for (const np::Kernels* other : np::kAllKernels)
    if (settings["kernels"] == other->name && other->is_supported()) kernels = other;
  if (!kernels) Fail("the processor has none of our kernels");
  const Engine engine(settings["libraries"], threads, *kernels);
  ggml_backend_buffer_t memory = ggml_backend_buft_alloc_buffer(engine.plain(), size_t{256} << 20);
  ggml_backend_buffer_clear(memory, 1);
  const char* base = static_cast<const char*>(ggml_backend_buffer_get_base(memory));
  for (const std::string& type_name : Split(settings["types"]))
    for (const std::string& shape : Split(settings["shapes"]))
      for (const std::string& tokens : Split(settings["tokens"])) {
        ggml_type type = GGML_TYPE_COUNT;
        for (int t = 0; t < GGML_TYPE_COUNT; ++t)
          if (ggml_type_name(static_cast<ggml_type>(t)) == type_name) type = static_cast<ggml_type>(t);
        if (type == GGML_TYPE_COUNT) Fail("no type " + type_name);
        int width = 0, rows = 0;
        if (std::sscanf(shape.c_str(), "%dx%d", &width, &rows) != 2) Fail("no shape " + shape);
        Matmuls ours(engine, true, type, width, rows, std::atoi(tokens.c_str()));
        Matmuls theirs(engine, false, type, width, rows, std::atoi(tokens.c_str()));
        std::printf("{\"kernels\":\"%s\",\"type\":\"%s\",\"width\":%d,\"rows\":%d,\"tokens\":%s,\"turns\":[", kernels->name,
                    type_name.c_str(), width, rows, tokens.c_str());
        for (int round = 0; round < rounds; ++round) {
          double rates[2];
          for (int side = 0; side < 2; ++side) {
            Matmuls& matmuls = side == 0 ? ours : theirs;
            int times = 0;
            double seconds = 0;
            for (; seconds < least; ++times) seconds += Seconds([&] { matmuls.Run(); });
            rates[side] = times / seconds;
          }
          std::this_thread::sleep_for(kPoolSleeps);
          std::printf("%s{\"ours\":%.4g,\"ggml\":%.4g,\"oursBytes\":%.4g,\"ggmlBytes\":%.4g,\"peak\":%.4g,\"memory\":%.4g}",
                      round ? "," : "", rates[0] * ours.flop(), rates[1] * theirs.flop(), rates[0] * ours.bytes(),
                      rates[1] * theirs.bytes(), PeakOps(*kernels, threads), BytesRead(base, size_t{256} << 20, threads));
        }
        std::printf("]}\n");
        std::fflush(stdout);
      }
  return 0;
}
