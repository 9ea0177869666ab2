#include "matmul/engine-functions.h"

#ifdef __linux__
#include <dlfcn.h>
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
#undef ONPOLICY_FIND
  functions->extra_buffer_types = reinterpret_cast<decltype(functions->extra_buffer_types)>(
      find("_Z39ggml_backend_cpu_get_extra_buffer_typesv"));
  if (library) dlclose(library);  // it stays open: the engine holds it
  return problem->empty();
}

#else

bool FindEngineFunctions(ggml_backend_dev_t, EngineFunctions*, std::string*) { return false; }

#endif

}  // namespace onpolicy::matmul
