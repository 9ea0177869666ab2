#include "engine-assumptions/matmul/buffer-type.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "base/system-memory.h"
#include "base/threads.h"
#include "engine-assumptions/matmul/node.h"
#include "engine-assumptions/table/nodes.h"
#include "kernels/matmul/packing.h"

#ifdef ONPOLICY_PRODUCTS

// ggml's abstract class. Its virtual table is defined in this addon.
namespace ggml::cpu {
extra_buffer_type::~extra_buffer_type() {}
}  // namespace ggml::cpu

namespace onpolicy::matmul {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kReadAhead = 8192;           // kernels prefetch beyond the last panel
constexpr size_t kBytesPerThread = size_t{1} << 20;  // smaller weights are packed by one thread

ggml_backend_buffer_type g_type;
OperationFunction* g_operation = nullptr;
thread_local Packing* t_packing = nullptr;
thread_local bool t_has_unknown = false;

bool IsOurs(const ggml_tensor* tensor) { return tensor->buffer && tensor->buffer->buft == &g_type; }

class ExtraType : public ggml::cpu::extra_buffer_type {
 public:
  // The loader asks with a weight in a buffer of size 0, the scheduler with a loaded weight.
  bool supports_op(ggml_backend_dev_t, const ggml_tensor* op) override {
    if (!IsMatmul(op) || !IsOurs(op->src[0]) || op->src[1]->type != GGML_TYPE_F32) return false;
    const bool is_loading = op->src[0]->buffer->size == 0;
    if (!IsKnown(op)) t_has_unknown = true;
    return PackedFormat(op->src[0]) && (t_packing || !is_loading);
  }
  ggml::cpu::tensor_traits* get_tensor_traits(const ggml_tensor* op) override {
    if (IsMatmul(op) && IsOurs(op->src[0])) return NodeTraits(op);
    return g_operation ? g_operation(op) : nullptr;
  }
};

}  // namespace

// Functions of a buffer. Its context is its memory, which comes from the system because allocators of hosts have limits.
struct WeightBuffer {
  static ggml_backend_buffer_t Allocate(ggml_backend_buffer_type_t type, size_t size) {
    ggml_backend_buffer_i functions{};
    functions.free_buffer = Free;
    functions.get_base = Base;
    functions.set_tensor = Set;
    functions.get_tensor = Get;
    functions.memset_tensor = Fill;
    functions.clear = Clear;
    void* memory = size > 0 && t_packing ? t_packing->memory_.Take(Reserved(size)) : nullptr;
    if (size > 0 && !memory) memory = TakeHugePages(Reserved(size));
    if (size > 0 && !memory) return nullptr;
    return Api().ggml_backend_buffer_init(type, functions, memory, size);
  }

  static size_t Reserved(size_t size) { return RoundedToHugePages(size + kReadAhead); }

  static void Free(ggml_backend_buffer_t buffer) {
    if (t_packing) t_packing->memory_.Stop();
    if (buffer->context) FreeSystemMemory(buffer->context, Reserved(buffer->size));
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
    const size_t whole = Api().ggml_nbytes(tensor);
    if (size < whole) {
      std::vector<uint8_t> bytes(whole);
      Get(buffer, tensor, bytes.data(), 0, whole);
      std::memcpy(bytes.data() + offset, data, size);
      return Set(buffer, tensor, bytes.data(), 0, whole);
    }
    Share(tensor, [&](const PackedMatrix& matrix, int64_t index, int64_t first, int64_t last) {
      PackPanels(matrix, static_cast<const char*>(data) + index * tensor->nb[2], first, last, const_cast<uint8_t*>(matrix.panels));
    });
    if (t_packing) t_packing->packed_bytes_ += size;
  }

  static void Get(ggml_backend_buffer_t, const ggml_tensor* tensor, void* data, size_t offset, size_t size) {
    std::vector<uint8_t> bytes(Api().ggml_nbytes(tensor));
    Share(tensor, [&](const PackedMatrix& matrix, int64_t index, int64_t first, int64_t last) {
      UnpackPanels(matrix, first, last, bytes.data() + index * tensor->nb[2]);
    });
    std::memcpy(data, bytes.data() + offset, size);
  }

  // Runs `work(matrix, its index, first, last)` over the panels of all matrices, on up to 8 threads if there are several MiB to copy.
  template <typename Work>
  static void Share(const ggml_tensor* tensor, const Work& work) {
    const int64_t panels = MatrixOf(tensor, 0).panel_count(), all = MatrixCount(tensor) * panels;
    const int64_t most = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, 8);
    const int64_t threads = std::clamp<int64_t>(static_cast<int64_t>(Api().ggml_nbytes(tensor) / kBytesPerThread), 1, most);
    OnThreads(static_cast<int>(threads), [&](int64_t i) {
      for (int64_t panel = all * i / threads, end = all * (i + 1) / threads; panel < end;) {
        const int64_t index = panel / panels, last = std::min(end, (index + 1) * panels);
        work(MatrixOf(tensor, index), index, panel - index * panels, last - index * panels);
        panel = last;
      }
    });
  }
};

ggml_backend_buffer_type_t MakeBufferType(ggml_backend_dev_t cpu, const Kernels& kernels) {
  static ExtraType extra;
  SetNodeKernels(kernels);
  g_type.iface.get_name = [](ggml_backend_buffer_type_t) { return "ONPOLICY_PRODUCTS"; };
  g_type.iface.alloc_buffer = WeightBuffer::Allocate;
  g_type.iface.get_alignment = [](ggml_backend_buffer_type_t) { return kAlignment; };
  g_type.iface.get_max_size = [](ggml_backend_buffer_type_t) { return SIZE_MAX; };
  g_type.iface.get_alloc_size = [](ggml_backend_buffer_type_t, const ggml_tensor* tensor) {
    const Format* format = PackedFormat(tensor);
    if (!format) return Api().ggml_nbytes(tensor);
    return static_cast<size_t>(MatrixCount(tensor)) * PackedBytes(*format, tensor->ne[0], tensor->ne[1]);
  };
  g_type.device = cpu;
  g_type.context = &extra;
  return &g_type;
}

void SetOperations(OperationFunction* operation) { g_operation = operation; }

bool HasUnknownMatmul(const std::function<void()>& plan) {
  t_has_unknown = false;
  plan();
  return t_has_unknown;
}

Packing::Packing(bool packs, size_t bytes) : memory_(packs ? bytes : 0), outer_(t_packing) { t_packing = packs ? this : nullptr; }
Packing::~Packing() { t_packing = outer_; }

}  // namespace onpolicy::matmul

#else

namespace onpolicy::matmul {

ggml_backend_buffer_type_t MakeBufferType(ggml_backend_dev_t, const Kernels&) { return nullptr; }
void SetOperations(OperationFunction*) {}
bool HasUnknownMatmul(const std::function<void()>&) { return false; }
Packing::Packing(bool, size_t) : memory_(0), outer_(nullptr) {}
Packing::~Packing() {}

}  // namespace onpolicy::matmul

#endif
