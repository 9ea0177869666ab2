// An addon of Node: calls of the engine's functions that the library looks up go through stubs, which count them, and of which one fails
// an assert of the engine. On Linux it is loaded with LD_PRELOAD, too; on Windows, when the library's addon is in memory and the engine's
// libraries are not. Its exports are an ArrayBuffer of 32-bit integers: the place of the function that is to fail in the list that the
// test generates (from 1; 0: none), which a failed assert resets, and the calls of each function.
#ifdef _WIN32
#include <windows.h>
#else
#define _GNU_SOURCE
#include <dlfcn.h>
#endif
#include <stdint.h>
#include <string.h>

#include "names.h"  // COUNT, NAMES

#define TEXT_OF(value) #value
#define VALUE_OF(macro) TEXT_OF(macro)

int32_t control[COUNT + 1] __attribute__((used));
void* reals[COUNT + 1] __attribute__((used));
extern char stubs[];
static const char* const names[COUNT] = {NAMES};

// Stubs of 32 bytes. They jump, so that arguments and frames are those of the call.
__asm__(
    ".text\n"
    ".balign 32\n"
    "stubs:\n"
    ".set number, 1\n"
    ".rept " VALUE_OF(COUNT) "\n"
    ".balign 32\n"
    "incl control + 4 * number(%rip)\n"
    "cmpl $number, control(%rip)\n"
    "je fail\n"
    "jmp *reals + 8 * number(%rip)\n"
    ".set number, number + 1\n"
    ".endr\n");

static void* stub_of(const char* name, void* real) {
  for (int i = 0; real && i < COUNT; ++i)
    if (strcmp(name, names[i]) == 0) {
      reals[i + 1] = real;
      return stubs + 32 * i;
    }
  return real;
}

#ifdef _WIN32

// Searches the process's executable if `library` is null.
static void* find(const char* library, const char* name) { return (void*)GetProcAddress(GetModuleHandleA(library), name); }

static FARPROC WINAPI find_with_stub(HMODULE library, LPCSTR name) {
  FARPROC real = GetProcAddress(library, name);
  return (uintptr_t)name >> 16 == 0 ? real : (FARPROC)stub_of(name, (void*)real);
}

// Replaces a function that a loaded library imports.
static void replace(const char* library, void* function, void* other) {
  char* base = (char*)GetModuleHandleA(library);
  if (!base) return;
  const IMAGE_NT_HEADERS* header = (const IMAGE_NT_HEADERS*)(base + ((const IMAGE_DOS_HEADER*)base)->e_lfanew);
  const DWORD imports = header->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT].VirtualAddress;
  for (const IMAGE_IMPORT_DESCRIPTOR* from = (const IMAGE_IMPORT_DESCRIPTOR*)(base + imports); from->Name; ++from)
    for (void** imported = (void**)(base + from->FirstThunk); *imported; ++imported)
      if (*imported == function) {
        DWORD protection;
        VirtualProtect(imported, sizeof *imported, PAGE_READWRITE, &protection);
        *imported = other;
        VirtualProtect(imported, sizeof *imported, protection, &protection);
      }
}

#else

static void* real_dlsym(void* handle, const char* name) {
  static void* (*found)(void*, const char*);
  if (!found) found = (void* (*)(void*, const char*))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  if (!found) found = (void* (*)(void*, const char*))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  return found(handle, name);
}

static void* find(const char* library, const char* name) {
  (void)library;
  return real_dlsym(RTLD_DEFAULT, name);
}

__attribute__((visibility("default"))) void* dlsym(void* handle, const char* name) { return stub_of(name, real_dlsym(handle, name)); }

#endif

__attribute__((used)) void fail(void) {
  control[0] = 0;
  void (*fail_assert)(const char*, int, const char*, ...) =
      (void (*)(const char*, int, const char*, ...))find("ggml-base.dll", "ggml_abort");
  fail_assert("forced.c", 1, "a forced assert");
}

// napi_value napi_register_module_v1(napi_env, napi_value exports)
#ifdef _WIN32
__declspec(dllexport)
#else
__attribute__((visibility("default")))
#endif
void* napi_register_module_v1(void* env, void* exports) {
  int (*create)(void*, void*, size_t, void*, void*, void**) =
      (int (*)(void*, void*, size_t, void*, void*, void**))find(NULL, "napi_create_external_arraybuffer");
  create(env, control, sizeof control, NULL, NULL, &exports);
#ifdef _WIN32
  replace("onpolicy.node", (void*)GetProcAddress, (void*)find_with_stub);
#endif
  return exports;
}
