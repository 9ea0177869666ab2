// The hook on Windows, whose libraries do not export ggml-cpu's list of buffer types. It has one entry, ggml-cpu's own repacking. An object
// of ours takes the place of the one that is asked there, and asks it in turn; the tables of the CPU device name our type beside it.
#include "matmul/hook.h"

#ifdef __MINGW32__
#include <windows.h>

#include <cstring>

namespace onpolicy::matmul {
namespace {

// Objects of the engine as its compiler, Microsoft's, lays them out: first a pointer to the functions, of which one is the destructor.
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

// What the pointer before the functions leads to. Places are distances from the start of the library.
struct ClassLocator {
  uint32_t signature, offset, constructor_offset, name_place, bases_place, own_place;
  static constexpr uint32_t kSignature = 1;      // of 64 bits
  static constexpr size_t kNameOffset = 16;      // behind two pointers
};
constexpr char kRepackClass[] = ".?AVextra_buffer_type@repack@cpu@ggml@@";

// What was there before.
struct Original {
  ggml_backend_buffer_type_t repack;
  EngineType* object;
  bool (*supports_op)(ggml_backend_dev_t, const ggml_tensor*);
  bool (*supports_buft)(ggml_backend_dev_t, ggml_backend_buffer_type_t);
  void* (*get_proc_address)(ggml_backend_reg_t, const char*);
} g_original;
ggml_backend_buffer_type_t g_ours = nullptr;
ggml_backend_buffer_type_t g_types[3] = {};  // ours, the original one, null

ggml::cpu::extra_buffer_type* OurObject() { return static_cast<ggml::cpu::extra_buffer_type*>(g_ours->context); }

// As ggml-cpu goes through its list: the first that computes a node does it.
bool WorkSize(EngineTraits*, int threads, const ggml_tensor* node, size_t* size) {
  ggml::cpu::tensor_traits* ours = OurObject()->get_tensor_traits(node);
  if (ours && ours->work_size(threads, node, *size)) return true;
  EngineTraits* theirs = g_original.object->functions->get_tensor_traits(g_original.object, node);
  return theirs && theirs->functions->work_size(theirs, threads, node, size);
}

bool ComputeForward(EngineTraits*, ggml_compute_params* params, ggml_tensor* node) {
  ggml::cpu::tensor_traits* ours = OurObject()->get_tensor_traits(node);
  if (ours && ours->compute_forward(params, node)) return true;
  EngineTraits* theirs = g_original.object->functions->get_tensor_traits(g_original.object, node);
  return theirs && theirs->functions->compute_forward(theirs, params, node);
}

constexpr EngineTraits::Functions kTraitsFunctions = {[](EngineTraits*) {}, WorkSize, ComputeForward};
EngineTraits g_traits = {&kTraitsFunctions};

constexpr EngineType::Functions kTypeFunctions = {
    [](EngineType*) {},
    [](EngineType*, ggml_backend_dev_t cpu, const ggml_tensor* op) {
      return g_original.object->functions->supports_op(g_original.object, cpu, op);
    },
    [](EngineType*, const ggml_tensor*) { return &g_traits; }};
EngineType g_object = {&kTypeFunctions};

bool SupportsOperation(ggml_backend_dev_t cpu, const ggml_tensor* op) {
  for (const ggml_tensor* source : op->src)
    if (source && source->buffer && source->buffer->buft == g_ours) return OurObject()->supports_op(cpu, op);
  return g_original.supports_op(cpu, op);
}

bool SupportsType(ggml_backend_dev_t cpu, ggml_backend_buffer_type_t type) {
  return type == g_ours || g_original.supports_buft(cpu, type);
}

ggml_backend_buffer_type_t* Types(ggml_backend_dev_t) { return g_types; }

constexpr char kTypesName[] = "ggml_backend_dev_get_extra_bufts";

void* FunctionOf(ggml_backend_reg_t reg, const char* name) {
  if (std::strcmp(name, kTypesName) == 0) return reinterpret_cast<void*>(&Types);
  return g_original.get_proc_address(reg, name);
}

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

  // Whether an object is of the repacking's class, as Microsoft's compiler lays it out.
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

bool Hook(ggml_backend_dev_t cpu, ggml_backend_buffer_type_t type, std::string* problem) {
  const Image image(reinterpret_cast<const void*>(cpu->iface.get_name));
  const auto fail = [&](const char* why) {
    *problem = why;
    return false;
  };
  ggml_backend_reg_t reg = cpu->reg;
  if (!image.Has(cpu->iface.supports_op) || !image.Has(cpu->iface.supports_buft) || !image.Has(reg->iface.get_proc_address))
    return fail("functions of the CPU backend are not its library's own");
  const auto types = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(reg->iface.get_proc_address(reg, kTypesName));
  std::vector<ggml_backend_buffer_type_t> list;
  for (auto* next = types ? types(cpu) : nullptr; next && *next; ++next) list.push_back(*next);
  if (!IsExpected(list, cpu, problem)) return false;
  if (list.size() != 1) return fail("the engine does not repack weights");
  ggml_backend_buffer_type_t repack = list[0];
  auto* object = static_cast<EngineType*>(repack->context);
  if (!image.Has(repack, sizeof *repack) || !IsWritable(repack) || !IsWritable(object) || !image.IsRepack(object))
    return fail("the engine's repacking is of another class");
  if (!IsWritable(cpu) || !IsWritable(reg)) return fail("tables of the CPU backend are not writable");
  g_original = {repack, object, cpu->iface.supports_op, cpu->iface.supports_buft, reg->iface.get_proc_address};
  g_ours = g_types[0] = type;
  g_types[1] = repack;
  cpu->iface.supports_op = SupportsOperation;
  cpu->iface.supports_buft = SupportsType;
  reg->iface.get_proc_address = FunctionOf;
  repack->context = &g_object;
  return true;
}

void Unhook(ggml_backend_dev_t cpu) {
  g_original.repack->context = g_original.object;
  cpu->reg->iface.get_proc_address = g_original.get_proc_address;
  cpu->iface.supports_buft = g_original.supports_buft;
  cpu->iface.supports_op = g_original.supports_op;
}

}  // namespace onpolicy::matmul

#endif
