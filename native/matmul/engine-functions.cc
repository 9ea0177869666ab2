#include "matmul/engine-functions.h"

#ifdef __linux__
#include <dlfcn.h>
#elif defined(_WIN32)
#include <windows.h>
#endif

namespace onpolicy::matmul {

#ifdef __linux__

bool FindEngineFunctions(ggml_backend_dev_t cpu, EngineFunctions* functions, std::string* problem) {
  // The CPU backend is one of several libraries, of which ggml has chosen the best one: any function of it leads there.
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(cpu->iface.get_name), &info)) {
    *problem = "the CPU backend's library was not found";
    return false;
  }
  void* library = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  const auto find = [&](const char* name) {
    void* symbol = library ? dlsym(library, name) : nullptr;
    if (!symbol && problem->empty()) *problem = std::string(info.dli_fname) + " exports no " + name;
    return symbol;
  };
#define ONPOLICY_FIND(name) functions->name = reinterpret_cast<decltype(functions->name)>(find(#name));
  ONPOLICY_PRODUCT_FUNCTIONS(ONPOLICY_FIND)
  ONPOLICY_THREAD_FUNCTIONS(ONPOLICY_FIND)
#undef ONPOLICY_FIND
  functions->extra_buffer_types = reinterpret_cast<decltype(functions->extra_buffer_types)>(
      find("_Z39ggml_backend_cpu_get_extra_buffer_typesv"));
  if (library) dlclose(library);  // it stays open: the engine holds it
  return problem->empty();
}

#elif defined(_WIN32)

bool FindEngineFunctions(ggml_backend_dev_t cpu, EngineFunctions* functions, std::string* problem) {
  // Two libraries, each of which a function leads to: that of the CPU backend, and that of what all backends share.
  HMODULE libraries[2] = {};
  const auto open = [](auto* function, HMODULE* library) {
    constexpr DWORD kFlags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    return GetModuleHandleExW(kFlags, reinterpret_cast<const wchar_t*>(function), library) != 0;
  };
  if (!open(cpu->iface.get_name, &libraries[0]) || !open(cpu->iface.get_buffer_type(cpu)->iface.get_name, &libraries[1])) {
    *problem = "the CPU backend's library was not found";
    return false;
  }
  const auto find = [&](const char* name) {
    void* symbol = nullptr;
    for (HMODULE library : libraries)
      if (!symbol) symbol = reinterpret_cast<void*>(GetProcAddress(library, name));
    if (!symbol && problem->empty()) *problem = std::string("the CPU backend's library exports no ") + name;
    return symbol;
  };
#define ONPOLICY_FIND(name) functions->name = reinterpret_cast<decltype(functions->name)>(find(#name));
  ONPOLICY_PRODUCT_FUNCTIONS(ONPOLICY_FIND)
#undef ONPOLICY_FIND
  return problem->empty();
}

#else

bool FindEngineFunctions(ggml_backend_dev_t, EngineFunctions*, std::string*) { return false; }

#endif

}  // namespace onpolicy::matmul
