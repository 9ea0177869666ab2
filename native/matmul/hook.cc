#include "matmul/hook.h"

#include <cstring>

#ifdef __linux__
#include <dlfcn.h>

#include "matmul/team.h"
#endif

namespace onpolicy::matmul {

bool IsExpected(const std::vector<ggml_backend_buffer_type_t>& list, ggml_backend_dev_t cpu, std::string* problem) {
  for (ggml_backend_buffer_type_t type : list) {
    const char* name = type && type->device == cpu && type->iface.get_name ? type->iface.get_name(type) : nullptr;
    if (name && std::strcmp(name, "CPU_REPACK") == 0) continue;
    if (name && std::strcmp(name, "AMX") == 0) return false;
    *problem = std::string("the engine has an unexpected buffer type ") + (name ? name : "of no name");
    return false;
  }
  return true;
}

#ifdef __linux__

namespace {

// ggml-cpu's list of buffer types whose tensors it computes in their own way.
std::vector<ggml_backend_buffer_type_t>& (*g_extra_types)() = nullptr;

// The CPU backend is one of several libraries, of which ggml has chosen the best one: any function of it leads there.
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
  find(g_extra_types, "_Z39ggml_backend_cpu_get_extra_buffer_typesv");
  if (library) dlclose(library);  // it stays open: the engine holds it
  return problem->empty();
}

}  // namespace

bool Hook(ggml_backend_dev_t cpu, ggml_backend_buffer_type_t type, std::string* problem) {
  if (!FindFunctions(cpu, problem) || !IsExpected(g_extra_types(), cpu, problem)) return false;
  g_extra_types().insert(g_extra_types().begin(), type);
  return true;
}

void Unhook(ggml_backend_dev_t) { g_extra_types().erase(g_extra_types().begin()); }

#elif !defined(__MINGW32__)

bool Hook(ggml_backend_dev_t, ggml_backend_buffer_type_t, std::string*) { return false; }
void Unhook(ggml_backend_dev_t) {}

#endif

}  // namespace onpolicy::matmul
