#include "engine-assumptions/asserts.h"

#include <cstdio>
#include <cstring>

#ifdef _WIN32
#include <windows.h>

#include "base/stay-loaded.h"
#endif

#include "base/engine.h"
#include "engine-assumptions/pool/computation.h"

namespace onpolicy {

#ifdef _WIN32
namespace {

// C runtime functions that a failed assert calls (wide and narrow variants).
constexpr const char* kOnFailure[] = {"_wassert", "_assert"};

void GoOn(const void*, const void*, unsigned) {}

bool IsOnFailure(const char* name) {
  for (const char* one : kOnFailure)
    if (std::strcmp(name, one) == 0) return true;
  return false;
}

void Replace(ULONG_PTR* function) {
  DWORD protection = 0;
  if (!VirtualProtect(function, sizeof *function, PAGE_READWRITE, &protection)) return;
  *function = reinterpret_cast<ULONG_PTR>(&GoOn);
  VirtualProtect(function, sizeof *function, protection, &protection);
}

}  // namespace

// For each library that it imports, a loaded library has two lists: the names, and the addresses of the functions that the system found for
// them.
void IgnoreAsserts(const void* place) {
  HMODULE module = nullptr;
  constexpr DWORD kFlags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
  if (!GetModuleHandleExW(kFlags, static_cast<const wchar_t*>(place), &module) || !StayLoaded()) return;
  char* base = reinterpret_cast<char*>(module);
  const auto* header = reinterpret_cast<const IMAGE_NT_HEADERS*>(base + reinterpret_cast<const IMAGE_DOS_HEADER*>(base)->e_lfanew);
  const IMAGE_DATA_DIRECTORY& imports = header->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT];
  if (imports.Size == 0) return;
  const auto* library = reinterpret_cast<const IMAGE_IMPORT_DESCRIPTOR*>(base + imports.VirtualAddress);
  for (; library->Name != 0; ++library) {
    if (library->OriginalFirstThunk == 0) continue;  // without names
    const auto* name = reinterpret_cast<const IMAGE_THUNK_DATA*>(base + library->OriginalFirstThunk);
    auto* function = reinterpret_cast<IMAGE_THUNK_DATA*>(base + library->FirstThunk);
    for (; name->u1.AddressOfData != 0; ++name, ++function) {
      if (IMAGE_SNAP_BY_ORDINAL(name->u1.Ordinal)) continue;
      if (IsOnFailure(reinterpret_cast<const IMAGE_IMPORT_BY_NAME*>(base + name->u1.AddressOfData)->Name))
        Replace(&function->u1.Function);
    }
  }
}

#else

void IgnoreAsserts(const void*) {}

#endif

namespace {

ggml_abort_callback_t g_before = nullptr;  // set by another copy of this library, or by another user of the engine

void OnFatal(const char* message) {
  if (LeaveComputation(message) && IsInEngine()) LeaveEngine(message);
  if (g_before) return g_before(message);
  std::fprintf(stderr, "%s\n", message);
}

}  // namespace

void CatchFatal() { g_before = Api().ggml_set_abort_callback(OnFatal); }

}  // namespace onpolicy
