// Names of functions -> those of the process that loads the addon: Node's, whatever its executable is called, and the engine's,
// whose libraries are open. A library of Windows otherwise says by name which file has each function.
// `host-functions.inc` has a line FUNCTION(name) for each.
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
// The order matters.
#include <psapi.h>

#if defined(__aarch64__)
#define JUMP(name)                         \
  ".p2align 2\n" #name ":\n"               \
  "adrp x16, host_" #name "\n"             \
  "ldr x16, [x16, :lo12:host_" #name "]\n" \
  "br x16\n"
#else
#define JUMP(name) #name ":\njmp *host_" #name "(%rip)\n"
#endif

extern "C" {
#define FUNCTION(name)                               \
  void* host_##name __attribute__((used)) = nullptr; \
  asm(".text\n.globl " #name "\n" JUMP(name));
#include "host-functions.inc"
#undef FUNCTION
}

namespace {

constexpr int kMaxModules = 1024;

int Missing() { return 9; }  // `napi_generic_failure`: an older Node has not all of its functions

struct Found {
  Found() {
    HMODULE modules[kMaxModules];  // the executable is the first
    DWORD bytes = 0;
    if (!K32EnumProcessModules(GetCurrentProcess(), modules, sizeof(modules), &bytes)) return;
    const int count = static_cast<int>(bytes < sizeof(modules) ? bytes / sizeof(HMODULE) : kMaxModules);
    const auto find = [&](const char* name) {
      for (int i = 0; i < count; ++i)
        if (const FARPROC function = GetProcAddress(modules[i], name)) return reinterpret_cast<void*>(function);
      return reinterpret_cast<void*>(Missing);
    };
#define FUNCTION(name) host_##name = find(#name);
#include "host-functions.inc"
#undef FUNCTION
  }
};

const Found g_found;

}  // namespace
