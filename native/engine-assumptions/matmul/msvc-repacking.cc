// The object of ggml-cpu's repacking on Windows, as Microsoft's compiler lays it out.
#include "engine-assumptions/matmul/repacking.h"

#ifdef __MINGW32__
#include <windows.h>

#include <cstring>

namespace onpolicy::matmul {
namespace {

// Objects of the engine as Microsoft's compiler lays them out: first a pointer to the virtual functions, which begin with the destructor.
struct EngineTraits {
  struct Functions {
    void (*destroy)(EngineTraits*);
    bool (*work_size)(EngineTraits*, int threads, const ggml_tensor* node, size_t* size);
    bool (*compute_forward)(EngineTraits*, ggml_compute_params*, ggml_tensor* node);
  };
  const Functions* functions;
};
struct EngineType {
  struct Functions {
    void (*destroy)(EngineType*);
    bool (*supports_op)(EngineType*, ggml_backend_dev_t, const ggml_tensor* op);
    EngineTraits* (*get_tensor_traits)(EngineType*, const ggml_tensor* node);
  };
  const Functions* functions;
};

// The record before a virtual table, which names the class. Places are offsets from the start of the library.
struct ClassLocator {
  uint32_t signature, offset, constructor_offset, name_place, bases_place, own_place;
  static constexpr uint32_t kSignature = 1;      // 64-bit layout
  static constexpr size_t kNameOffset = 16;      // behind two pointers
};
constexpr char kRepackClass[] = ".?AVextra_buffer_type@repack@cpu@ggml@@";

constexpr EngineTraits::Functions kTraitsFunctions = {
    [](EngineTraits*) {},
    [](EngineTraits*, int threads, const ggml_tensor* node, size_t* size) { return WorkSizeOf(threads, node, *size); },
    [](EngineTraits*, ggml_compute_params* params, ggml_tensor* node) { return Compute(params, node); }};
EngineTraits g_traits = {&kTraitsFunctions};

constexpr EngineType::Functions kTypeFunctions = {
    [](EngineType*) {},
    [](EngineType*, ggml_backend_dev_t cpu, const ggml_tensor* op) { return SupportedByRepacking(cpu, op); },
    [](EngineType*, const ggml_tensor*) { return &g_traits; }};
EngineType g_stand_in = {&kTypeFunctions};
EngineType* g_repacking = nullptr;

// A loaded library.
class Image {
 public:
  explicit Image(const void* function) {
    constexpr DWORD kFlags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    HMODULE module = nullptr;
    if (!GetModuleHandleExW(kFlags, static_cast<const wchar_t*>(function), &module)) return;
    base_ = reinterpret_cast<const char*>(module);
    size_ = reinterpret_cast<const IMAGE_NT_HEADERS*>(base_ + reinterpret_cast<const IMAGE_DOS_HEADER*>(base_)->e_lfanew)
                ->OptionalHeader.SizeOfImage;
  }

  bool Has(const void* place, size_t bytes = 1) const {
    const auto* at = static_cast<const char*>(place);
    return base_ && at >= base_ && bytes <= size_ && at <= base_ + size_ - bytes;
  }
  template <typename Result, typename... Arguments>
  bool Has(Result (*function)(Arguments...)) const {
    return Has(reinterpret_cast<const void*>(function));
  }

  // Returns true if an object has the repacking's class, as Microsoft's compiler lays it out.
  bool IsRepack(const EngineType* object) const {
    const EngineType::Functions* functions = object->functions;
    const auto* locator_place = reinterpret_cast<const ClassLocator* const*>(functions) - 1;
    if (!Has(locator_place, sizeof *locator_place + sizeof *functions) || !Has(*locator_place, sizeof **locator_place)) return false;
    const ClassLocator& locator = **locator_place;
    const char* name = base_ + locator.name_place + ClassLocator::kNameOffset;
    return locator.signature == ClassLocator::kSignature && locator.offset == 0 &&
           base_ + locator.own_place == reinterpret_cast<const char*>(&locator) && Has(name, sizeof kRepackClass) &&
           std::memcmp(name, kRepackClass, sizeof kRepackClass) == 0 && Has(functions->destroy) && Has(functions->supports_op) &&
           Has(functions->get_tensor_traits);
  }

 private:
  const char* base_ = nullptr;
  size_t size_ = 0;
};

bool IsWritable(const void* place) {
  MEMORY_BASIC_INFORMATION info;
  constexpr DWORD kWritable = PAGE_READWRITE | PAGE_WRITECOPY;
  return VirtualQuery(place, &info, sizeof info) != 0 && info.State == MEM_COMMIT && (info.Protect & kWritable) != 0;
}

}  // namespace

const char* RecognizeRepacking(ggml_backend_dev_t cpu, ggml_backend_buffer_type_t repack) {
  const Image image(reinterpret_cast<const void*>(cpu->iface.get_name));
  ggml_backend_reg_t reg = cpu->reg;
  if (!image.Has(cpu->iface.supports_op) || !image.Has(cpu->iface.supports_buft) || !image.Has(reg->iface.get_proc_address))
    return "functions of the CPU backend are not its library's own";
  auto* object = static_cast<EngineType*>(repack->context);
  if (!image.Has(repack, sizeof *repack) || !IsWritable(repack) || !IsWritable(object) || !image.IsRepack(object))
    return "the engine's repacking is of another class";
  if (!IsWritable(cpu) || !IsWritable(reg)) return "tables of the CPU backend are not writable";
  g_repacking = object;
  return nullptr;
}

void* RepackingStandIn() { return &g_stand_in; }

bool SupportedByRepacking(ggml_backend_dev_t cpu, const ggml_tensor* op) { return g_repacking->functions->supports_op(g_repacking, cpu, op); }

bool WorkSizeOfRepacking(int threads, const ggml_tensor* node, size_t& size) {
  EngineTraits* traits = g_repacking->functions->get_tensor_traits(g_repacking, node);
  return traits && traits->functions->work_size(traits, threads, node, &size);
}

bool ComputeByRepacking(ggml_compute_params* params, ggml_tensor* node) {
  EngineTraits* traits = g_repacking->functions->get_tensor_traits(g_repacking, node);
  return traits && traits->functions->compute_forward(traits, params, node);
}

}  // namespace onpolicy::matmul

#endif
