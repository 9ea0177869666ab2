#include "llama/shared-library.h"

#include "base/file-path.h"

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <dlfcn.h>
#endif

namespace onpolicy {

#ifdef _WIN32
// A bare name is looked for where the system's libraries are. What a library needs is next to it.
void* OpenSharedLibrary(const std::string& path, Names) {
  const auto file = FilePath(path);
  return LoadLibraryExW(file.c_str(), nullptr, file.is_absolute() ? LOAD_WITH_ALTERED_SEARCH_PATH : 0);
}
void CloseSharedLibrary(void* handle) { FreeLibrary(static_cast<HMODULE>(handle)); }
void* LibrarySymbol(void* handle, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(handle), name));
}
std::string LibraryError() { return "Windows error " + std::to_string(GetLastError()); }
#else
void* OpenSharedLibrary(const std::string& path, Names names) {
  return dlopen(path.c_str(), RTLD_NOW | (names == Names::kShared ? RTLD_GLOBAL : RTLD_LOCAL));
}
void CloseSharedLibrary(void* handle) { dlclose(handle); }
void* LibrarySymbol(void* handle, const char* name) { return dlsym(handle, name); }
std::string LibraryError() {
  const char* message = dlerror();
  return message ? message : "unknown error";
}
#endif

}  // namespace onpolicy
