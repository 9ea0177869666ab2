#include "matmul/buffer-type.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "base/threads.h"
#include "matmul/packing.h"
#include "matmul/matmul.h"

#ifdef ONPOLICY_X86_PRODUCTS
#include <sys/mman.h>

// ggml's abstract classes, whose virtual tables this addon brings itself.
namespace ggml::cpu {
tensor_traits::~tensor_traits() {}
extra_buffer_type::~extra_buffer_type() {}
}  // namespace ggml::cpu

namespace onpolicy::matmul {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kReadAhead = 8192;           // kernels fetch what follows the last panel
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kBytesPerThread = size_t{1} << 20;  // less is packed on one thread
constexpr int64_t kPiecesPerThread = 8;       // so that threads end at about the same time
constexpr int64_t kManyTokens = 64;           // that compute longer than memory takes: then twice the pieces

EngineFunctions g_functions;
const Kernels* g_kernels = nullptr;
ggml_backend_buffer_type g_type;
OperationFunction* g_operation = nullptr;
thread_local Packing* t_packing = nullptr;

bool IsOurs(const ggml_tensor* tensor) { return tensor->buffer && tensor->buffer->buft == &g_type; }

// Null where matmuls with this matrix are ggml's.
const Format* PackedFormat(const ggml_tensor* weights) {
  const bool is_matrix = weights->ne[2] == 1 && weights->ne[3] == 1 && !weights->view_src;
  return is_matrix && weights->ne[0] % kBlock == 0 ? FormatOf(weights->type) : nullptr;
}

PackedMatrix MatrixOf(const ggml_tensor* weights) {
  return {PackedFormat(weights), static_cast<const uint8_t*>(weights->data), weights->ne[0], weights->ne[1]};
}

// Matmuls of packed weights with each matrix of activations, run by all of ggml's threads.
class Matmuls : public ggml::cpu::tensor_traits {
 public:
  bool work_size(int, const ggml_tensor* op, size_t& size) override {
    const ggml_tensor* x = op->src[1];
    size = RoundedBytes(*PackedFormat(op->src[0]), x->ne[0], x->ne[1] * x->ne[2] * x->ne[3]) + kAlignment;
    return true;
  }

  bool compute_forward(ggml_compute_params* params, ggml_tensor* op) override {
    const PackedMatrix matrix = MatrixOf(op->src[0]);
    const ggml_tensor* x = op->src[1];
    const auto address = reinterpret_cast<uintptr_t>(params->wdata);
    auto* rounded = reinterpret_cast<int32_t*>((address + kAlignment - 1) / kAlignment * kAlignment);
    const size_t numbers = RoundedBytes(*matrix.format, matrix.width, x->ne[1]) / sizeof(int32_t);  // of a matrix of x
    const int64_t thread = params->ith, threads = params->nth;
    if (thread == 0) g_functions.ggml_threadpool_chunk_set(params->threadpool, params->nth);
    ForEachMatrix(x, [&](int64_t index, size_t at, size_t) {
      RoundBlocks(*g_kernels, *matrix.format, matrix.width, {static_cast<const char*>(x->data) + at, x->nb[1], x->ne[1]},
                  matrix.blocks() * thread / threads, matrix.blocks() * (thread + 1) / threads,
                  rounded + static_cast<size_t>(index) * numbers);
    }, op);
    g_functions.ggml_barrier(params->threadpool);
    const int64_t pieces = threads * kPiecesPerThread * (x->ne[1] < kManyTokens ? 1 : 2);
    const int64_t piece = std::max<int64_t>(1, matrix.panel_count() / pieces);
    for (int64_t i = thread; i * piece < matrix.panel_count(); i = g_functions.ggml_threadpool_chunk_add(params->threadpool, 1))
      ForEachMatrix(x, [&](int64_t index, size_t, size_t to) {
        MultiplyPanels(*g_kernels, matrix, rounded + static_cast<size_t>(index) * numbers, x->ne[1], i * piece,
                       std::min(matrix.panel_count(), (i + 1) * piece),
                       reinterpret_cast<float*>(static_cast<char*>(op->data) + to),
                       static_cast<int64_t>(op->nb[1] / sizeof(float)));
      }, op);
    return true;
  }

 private:
  // Calls `work(index, offset of x, offset of y)`, in bytes.
  template <typename Work>
  static void ForEachMatrix(const ggml_tensor* x, const Work& work, const ggml_tensor* y) {
    for (int64_t i3 = 0; i3 < x->ne[3]; ++i3)
      for (int64_t i2 = 0; i2 < x->ne[2]; ++i2)
        work(i3 * x->ne[2] + i2, static_cast<size_t>(i2) * x->nb[2] + static_cast<size_t>(i3) * x->nb[3],
             static_cast<size_t>(i2) * y->nb[2] + static_cast<size_t>(i3) * y->nb[3]);
  }
};

class ExtraType : public ggml::cpu::extra_buffer_type {
 public:
  // The loader asks with a weight in a buffer of no size; the scheduler with one that is loaded.
  bool supports_op(ggml_backend_dev_t, const ggml_tensor* op) override {
    if (op->op != GGML_OP_MUL_MAT || !IsOurs(op->src[0]) || op->src[1]->type != GGML_TYPE_F32) return false;
    const bool is_loading = op->src[0]->buffer->size == 0;
    const Format* format = PackedFormat(op->src[0]);
    if (!format || !is_loading) return format;
    return t_packing && (t_packing->packs() == Packs::kAll || format->terms != Terms::kFloats);
  }
  ggml::cpu::tensor_traits* get_tensor_traits(const ggml_tensor* op) override {
    if (op->op == GGML_OP_MUL_MAT && IsOurs(op->src[0])) return &matmuls_;
    return g_operation ? g_operation(op) : nullptr;
  }

 private:
  Matmuls matmuls_;
};

}  // namespace

// The functions of a buffer. Its context is its memory, which comes from the system: allocators of hosts have limits.
struct WeightBuffer {
  static ggml_backend_buffer_t Allocate(ggml_backend_buffer_type_t type, size_t size) {
    ggml_backend_buffer_i functions{};
    functions.free_buffer = Free;
    functions.get_base = Base;
    functions.set_tensor = Set;
    functions.get_tensor = Get;
    functions.memset_tensor = Fill;
    functions.clear = Clear;
    void* memory = nullptr;
    if (size > 0) {
      memory = mmap(nullptr, Reserved(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED) return nullptr;
      madvise(memory, Reserved(size), MADV_HUGEPAGE);
    }
    return g_functions.ggml_backend_buffer_init(type, functions, memory, size);
  }

  static size_t Reserved(size_t size) { return (size + kReadAhead + kHugePage - 1) / kHugePage * kHugePage; }

  static void Free(ggml_backend_buffer_t buffer) {
    if (buffer->context) munmap(buffer->context, Reserved(buffer->size));
  }
  static void* Base(ggml_backend_buffer_t buffer) {
    return buffer->context ? buffer->context : reinterpret_cast<void*>(kAlignment);
  }
  static void Clear(ggml_backend_buffer_t buffer, uint8_t value) { std::memset(buffer->context, value, buffer->size); }

  static void Fill(ggml_backend_buffer_t buffer, ggml_tensor* tensor, uint8_t value, size_t offset, size_t size) {
    const std::vector<uint8_t> bytes(size, value);
    Set(buffer, tensor, bytes.data(), offset, size);
  }

  static void Set(ggml_backend_buffer_t buffer, ggml_tensor* tensor, const void* data, size_t offset, size_t size) {
    const size_t whole = g_functions.ggml_nbytes(tensor);
    if (size < whole) {
      std::vector<uint8_t> bytes(whole);
      Get(buffer, tensor, bytes.data(), 0, whole);
      std::memcpy(bytes.data() + offset, data, size);
      return Set(buffer, tensor, bytes.data(), 0, whole);
    }
    const PackedMatrix matrix = MatrixOf(tensor);
    Share(matrix.panel_count(), size, [&](int64_t first, int64_t last) {
      PackPanels(matrix, data, first, last, static_cast<uint8_t*>(tensor->data));
    });
    if (t_packing) t_packing->packed_bytes_ += size;
  }

  static void Get(ggml_backend_buffer_t, const ggml_tensor* tensor, void* data, size_t offset, size_t size) {
    const PackedMatrix matrix = MatrixOf(tensor);
    std::vector<uint8_t> bytes(g_functions.ggml_nbytes(tensor));
    Share(matrix.panel_count(), bytes.size(),
          [&](int64_t first, int64_t last) { UnpackPanels(matrix, first, last, bytes.data()); });
    std::memcpy(data, bytes.data() + offset, size);
  }

  // Runs `work(first, last)` over all panels, on a few threads where there is much to copy.
  template <typename Work>
  static void Share(int64_t panels, size_t bytes, const Work& work) {
    const int64_t most = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, 8);
    const int64_t threads = std::clamp<int64_t>(static_cast<int64_t>(bytes / kBytesPerThread), 1, most);
    OnThreads(static_cast<int>(threads), [&](int i) { work(panels * i / threads, panels * (i + 1) / threads); });
  }
};

ggml_backend_buffer_type_t MakeBufferType(ggml_backend_dev_t cpu, const EngineFunctions& functions, const Kernels& kernels) {
  static ExtraType extra;
  g_functions = functions;
  g_kernels = &kernels;
  g_type.iface.get_name = [](ggml_backend_buffer_type_t) { return "ONPOLICY_PRODUCTS"; };
  g_type.iface.alloc_buffer = WeightBuffer::Allocate;
  g_type.iface.get_alignment = [](ggml_backend_buffer_type_t) { return kAlignment; };
  g_type.iface.get_alloc_size = [](ggml_backend_buffer_type_t, const ggml_tensor* tensor) {
    const Format* format = PackedFormat(tensor);
    return format ? PackedBytes(*format, tensor->ne[0], tensor->ne[1]) : g_functions.ggml_nbytes(tensor);
  };
  g_type.device = cpu;
  g_type.context = &extra;
  return &g_type;
}

void SetOperations(OperationFunction* operation) { g_operation = operation; }

Packing::Packing(Packs packs) : packs_(packs), outer_(t_packing) { t_packing = packs == Packs::kNone ? nullptr : this; }
Packing::~Packing() { t_packing = outer_; }

}  // namespace onpolicy::matmul

#else

namespace onpolicy::matmul {

ggml_backend_buffer_type_t MakeBufferType(ggml_backend_dev_t, const EngineFunctions&, const Kernels&) { return nullptr; }
void SetOperations(OperationFunction*) {}
Packing::Packing(Packs packs) : packs_(packs), outer_(nullptr) {}
Packing::~Packing() {}

}  // namespace onpolicy::matmul

#endif
