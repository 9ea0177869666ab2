#include "engine-assumptions/cpu-buffers.h"

#ifdef __linux__
#include <sys/mman.h>

#include <cstring>

#include "base/stay-loaded.h"
#include "base/system-memory.h"
#include "engine-assumptions/table/assumptions.h"
#include "engine-assumptions/table/backend-tables.h"

namespace onpolicy {
namespace {

constexpr size_t kLeast = size_t{1} << 20;  // smaller buffers are left to the engine's allocator

ggml_backend_buffer_type_i g_engine_type;
ggml_backend_buffer_i g_system_buffer;

ggml_backend_buffer_t Allocate(ggml_backend_buffer_type_t type, size_t size) {
  void* memory = size >= kLeast ? TakeHugePages(size) : nullptr;
  return memory ? Api().ggml_backend_buffer_init(type, g_system_buffer, memory, size) : g_engine_type.alloc_buffer(type, size);
}

void Free(ggml_backend_buffer_t buffer) { FreeSystemMemory(buffer->context, buffer->size); }

// Dropped pages read as zeros.
void Clear(ggml_backend_buffer_t buffer, uint8_t value) {
  const bool is_done = value == 0 && madvise(buffer->context, buffer->size, MADV_DONTNEED) == 0;
  if (!is_done) std::memset(buffer->context, value, buffer->size);
}

}  // namespace

void UseSystemMemory(ggml_backend_dev_t cpu) {
  const Library& library = Api();
  ggml_backend_buffer_type_t type = library.ggml_backend_dev_buffer_type(cpu);
  // The engine keeps pointers into this addon until the process ends.
  ggml_backend_buffer_t sample = StayLoaded() ? library.ggml_backend_buft_alloc_buffer(type, 1) : nullptr;
  if (!sample) return;
  if (!IsWritable(type, sizeof *type)) {
    library.ggml_backend_buffer_free(sample);
    return Break(Assumed::kBufferTable, "the table of the CPU's buffer type is read-only");
  }
  g_system_buffer = sample->iface;
  library.ggml_backend_buffer_free(sample);
  g_system_buffer.free_buffer = Free;
  g_system_buffer.clear = Clear;
  g_engine_type = type->iface;
  type->iface.alloc_buffer = Allocate;
  ggml_backend_buffer_t large = library.ggml_backend_buft_alloc_buffer(type, kLeast);
  const bool is_ours = large && large->iface.free_buffer == Free;
  if (large) library.ggml_backend_buffer_free(large);
  Check(Assumed::kBufferTable, is_ours ? "" : "the engine makes buffers without the function in its table");
  if (!is_ours) type->iface.alloc_buffer = g_engine_type.alloc_buffer;
}

}  // namespace onpolicy
#else
namespace onpolicy {
void UseSystemMemory(ggml_backend_dev_t) {}
}  // namespace onpolicy
#endif
