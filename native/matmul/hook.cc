#include "matmul/hook.h"

#include <cstring>

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

bool Hook(ggml_backend_dev_t cpu, const EngineFunctions& engine, ggml_backend_buffer_type_t type, std::string* problem) {
  auto& list = engine.extra_buffer_types();
  if (!IsExpected(list, cpu, problem)) return false;
  list.insert(list.begin(), type);
  return true;
}

void Unhook(ggml_backend_dev_t, const EngineFunctions& engine) {
  auto& list = engine.extra_buffer_types();
  list.erase(list.begin());
}

#elif !defined(__MINGW32__)

bool Hook(ggml_backend_dev_t, const EngineFunctions&, ggml_backend_buffer_type_t, std::string*) { return false; }
void Unhook(ggml_backend_dev_t, const EngineFunctions&) {}

#endif

}  // namespace onpolicy::matmul
