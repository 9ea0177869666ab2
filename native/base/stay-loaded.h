// A library that other threads still use -> it stays in memory when the last JavaScript thread that loaded it ends.
#pragma once

#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#endif

namespace onpolicy {

// Keeps the library that this is compiled into in memory until the process ends. Returns false if the system refuses.
inline bool StayLoaded() {
#ifdef _WIN32
  HMODULE module;
  return GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
                            reinterpret_cast<const wchar_t*>(&StayLoaded), &module) != 0;
#else
  Dl_info info;
  return dladdr(reinterpret_cast<const void*>(&StayLoaded), &info) != 0 &&
         dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE) != nullptr;
#endif
}

}  // namespace onpolicy
