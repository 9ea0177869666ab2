#include "engine-assumptions/matmul/hook.h"

#include <atomic>
#include <cstring>
#include <vector>

#include "engine-assumptions/matmul/repacking.h"
#include "engine-assumptions/pool/computation.h"
#include "engine-assumptions/table/names.h"

#ifdef __linux__
#include <dlfcn.h>

#include "engine-assumptions/matmul/team.h"
#endif

namespace onpolicy::matmul {

#if defined(__linux__) || defined(__MINGW32__)

namespace {

// Functions and objects of the engine that were replaced.
struct Original {
  ggml_backend_buffer_type_t repack;
  void* object;
  bool (*supports_op)(ggml_backend_dev_t, const ggml_tensor*);
  bool (*supports_buft)(ggml_backend_dev_t, ggml_backend_buffer_type_t);
  void* (*get_proc_address)(ggml_backend_reg_t, const char*);
} g_original;
ggml_backend_buffer_type_t g_ours = nullptr;
ggml_backend_buffer_type_t g_types[3] = {};  // ours, the original one, null

ggml::cpu::extra_buffer_type* OurObject() { return static_cast<ggml::cpu::extra_buffer_type*>(g_ours->context); }

// Views compute nothing, so that ggml-cpu supports them on any buffer.
bool IsView(ggml_op op) {
  return op == GGML_OP_NONE || op == GGML_OP_RESHAPE || op == GGML_OP_VIEW || op == GGML_OP_PERMUTE || op == GGML_OP_TRANSPOSE;
}

bool SupportsOperation(ggml_backend_dev_t cpu, const ggml_tensor* op) {
  if (IsView(op->op)) return g_original.supports_op(cpu, op);
  for (const ggml_tensor* source : op->src)
    if (source && source->buffer && source->buffer->buft == g_ours) return OurObject()->supports_op(cpu, op);
  return g_original.supports_op(cpu, op);
}

bool SupportsType(ggml_backend_dev_t cpu, ggml_backend_buffer_type_t type) {
  return type == g_ours || g_original.supports_buft(cpu, type);
}

ggml_backend_buffer_type_t* Types(ggml_backend_dev_t) { return g_types; }

void* FunctionOf(ggml_backend_reg_t reg, const char* name) {
  if (std::strcmp(name, kExtraTypes) == 0) return reinterpret_cast<void*>(&Types);
  return g_original.get_proc_address(reg, name);
}

// Other threads may compute with the engine meanwhile: each pointer is replaced atomically, and both values are valid for them.
template <typename Value>
void Replace(Value& place, std::type_identity_t<Value> value) {
  std::atomic_ref<Value>(place).store(value);
}

// Finds CPU_REPACK in the list of extra buffer types. AMX may stand beside it; it is left out of the list afterwards, so that no weights go there.
// Returns null and sets `problem` for a list that ggml-cpu does not have on these processors.
ggml_backend_buffer_type_t FindRepack(const std::vector<ggml_backend_buffer_type_t>& list, ggml_backend_dev_t cpu, std::string* problem) {
  ggml_backend_buffer_type_t repack = nullptr;
  for (ggml_backend_buffer_type_t type : list) {
    const char* name = type && type->device == cpu && type->iface.get_name ? type->iface.get_name(type) : nullptr;
    if (name && std::strcmp(name, kAmxType) == 0) continue;
    if (!name || repack || std::strcmp(name, kRepackType) != 0) {
      *problem = std::string("the engine has an unexpected buffer type ") + (name ? name : "of no name");
      return nullptr;
    }
    repack = type;
  }
  if (!repack) *problem = "the engine does not repack weights";
  return repack;
}

#ifdef __linux__

// The CPU backend is one of several libraries, of which ggml has chosen the best. The address of any of its functions identifies it.
bool FindFunctions(ggml_backend_dev_t cpu, std::string* problem) {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(cpu->iface.get_name), &info)) {
    *problem = "the CPU backend's library was not found";
    return false;
  }
  void* library = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(library ? dlsym(library, name) : nullptr);
    if (!function && problem->empty()) *problem = std::string(info.dli_fname) + " exports no " + name;
  };
  find(g_thread_functions.ggml_barrier, "ggml_barrier");
  find(g_thread_functions.ggml_threadpool_chunk_set, "ggml_threadpool_chunk_set");
  find(g_thread_functions.ggml_threadpool_chunk_add, "ggml_threadpool_chunk_add");
  if (library) dlclose(library);  // the engine still holds it open
  if (!problem->empty()) return false;
  SetBarrier(g_thread_functions.ggml_barrier);
  return true;
}

#else

bool FindFunctions(ggml_backend_dev_t, std::string*) { return true; }

#endif

}  // namespace

bool WorkSizeOf(int threads, const ggml_tensor* node, size_t& size) {
  ggml::cpu::tensor_traits* ours = OurObject()->get_tensor_traits(node);
  return (ours && ours->work_size(threads, node, size)) || WorkSizeOfRepacking(threads, node, size);
}

bool Compute(ggml_compute_params* params, ggml_tensor* node) {
  SeeNode(params->threadpool, params->ith, params->nth);
  ggml::cpu::tensor_traits* ours = OurObject()->get_tensor_traits(node);
  return (ours && ours->compute_forward(params, node)) || ComputeByRepacking(params, node);
}

bool Hook(ggml_backend_dev_t cpu, ggml_backend_buffer_type_t type, std::string* problem) {
  if (!FindFunctions(cpu, problem)) return false;
  ggml_backend_reg_t reg = cpu->reg;
  const auto types = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(reg->iface.get_proc_address(reg, kExtraTypes));
  std::vector<ggml_backend_buffer_type_t> list;
  for (auto* next = types ? types(cpu) : nullptr; next && *next; ++next) list.push_back(*next);
  ggml_backend_buffer_type_t repack = FindRepack(list, cpu, problem);
  if (!repack) return false;
  for (const auto& [place, bytes] : {std::pair<const void*, size_t>{cpu, sizeof *cpu}, {reg, sizeof *reg}, {repack, sizeof *repack}})
    if (!IsWritable(place, bytes)) *problem = "tables of the CPU backend are read-only";
  if (!problem->empty()) return false;
  if (const char* why = RecognizeRepacking(cpu, repack)) {
    *problem = why;
    return false;
  }
  g_original = {repack, repack->context, cpu->iface.supports_op, cpu->iface.supports_buft, reg->iface.get_proc_address};
  g_ours = g_types[0] = type;
  g_types[1] = repack;
  Replace(cpu->iface.supports_op, SupportsOperation);
  Replace(cpu->iface.supports_buft, SupportsType);
  Replace(reg->iface.get_proc_address, FunctionOf);
  Replace(repack->context, RepackingStandIn());
  return true;
}

void Unhook(ggml_backend_dev_t cpu) {
  Replace(g_original.repack->context, g_original.object);
  Replace(cpu->reg->iface.get_proc_address, g_original.get_proc_address);
  Replace(cpu->iface.supports_buft, g_original.supports_buft);
  Replace(cpu->iface.supports_op, g_original.supports_op);
}

#else

bool Hook(ggml_backend_dev_t, ggml_backend_buffer_type_t, std::string*) { return false; }
void Unhook(ggml_backend_dev_t) {}

#endif

}  // namespace onpolicy::matmul
