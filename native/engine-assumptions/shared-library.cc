#include "engine-assumptions/shared-library.h"

#include <filesystem>

#include "base/file-path.h"

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <dlfcn.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#else
#include <link.h>
#endif
#endif

namespace onpolicy {

#ifdef _WIN32
// Searches the system's folders for a bare name. The dependencies of a library are next to it.
void* OpenSharedLibrary(const std::string& path, Names) {
  const auto file = FilePath(path);
  return LoadLibraryExW(file.c_str(), nullptr, file.is_absolute() ? LOAD_WITH_ALTERED_SEARCH_PATH : 0);
}
void CloseSharedLibrary(void* handle) { FreeLibrary(static_cast<HMODULE>(handle)); }
void* LibrarySymbol(void* handle, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(handle), name));
}
std::string LibraryError() { return "Windows error " + std::to_string(GetLastError()); }

// The system finds a library by its file's name, and keeps one of each name.
std::vector<std::string> LoadedLibraries(const std::string& name) {
  const HMODULE library = GetModuleHandleA((name + ".dll").c_str());
  wchar_t path[32768];
  const DWORD length = library ? GetModuleFileNameW(library, path, 32768) : 0;
  if (length == 0) return {};
  const auto text = std::filesystem::path(std::wstring(path, length)).u8string();
  return {std::string(text.begin(), text.end())};
}
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

namespace {

bool IsLibraryNamed(const std::string& path, const std::string& name) {
  const std::string file = path.substr(path.rfind('/') + 1);
  return file.rfind("lib" + name + ".", 0) == 0;
}

}  // namespace

std::vector<std::string> LoadedLibraries(const std::string& name) {
  std::vector<std::string> paths;
#ifdef __APPLE__
  for (uint32_t i = 0; i < _dyld_image_count(); ++i)
    if (const char* path = _dyld_get_image_name(i); path && IsLibraryNamed(path, name)) paths.push_back(path);
#else
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* all) {
        static_cast<std::vector<std::string>*>(all)->push_back(info->dlpi_name ? info->dlpi_name : "");
        return 0;
      },
      &paths);
  std::erase_if(paths, [&](const std::string& path) { return !IsLibraryNamed(path, name); });
#endif
  return paths;
}
#endif

}  // namespace onpolicy
