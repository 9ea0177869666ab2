// Loaded with LD_PRELOAD: calls of the engine's functions that the addon looks up go through stubs, and the one that the file of
// FORCED_ASSERTS names fails an assert of the engine. The first number of that file is its place in the list that the test generates
// (0: none). Behind it are the calls of each function. A failed assert resets the number.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "names.h"  // COUNT, NAMES

extern void* const stubs[COUNT];
__attribute__((visibility("hidden"))) void* reals[COUNT + 1];
__attribute__((visibility("hidden"))) volatile int32_t* control;
static const char* const names[COUNT] = {NAMES};

static void* real_dlsym(void* handle, const char* name) {
  static void* (*found)(void*, const char*);
  if (!found) found = (void* (*)(void*, const char*))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  if (!found) found = (void* (*)(void*, const char*))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  return found(handle, name);
}

__attribute__((constructor)) static void begin(void) {
  const char* file = getenv("FORCED_ASSERTS");
  const int opened = file ? open(file, O_RDWR) : -1;
  static int32_t none[COUNT + 2];
  void* mapped = opened < 0 ? MAP_FAILED : mmap(NULL, sizeof none, PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
  control = mapped == MAP_FAILED ? none : mapped;
}

__attribute__((visibility("hidden"))) void fail(void) {
  control[0] = 0;
  void (*fail_assert)(const char*, int, const char*, ...) =
      (void (*)(const char*, int, const char*, ...))real_dlsym(RTLD_DEFAULT, "ggml_abort");
  fail_assert("forced.c", 1, "a forced assert");
}

void* dlsym(void* handle, const char* name) {
  void* real = real_dlsym(handle, name);
  for (int i = 0; real && i < COUNT; ++i)
    if (strcmp(name, names[i]) == 0) {
      reals[i + 1] = real;
      return stubs[i];
    }
  return real;
}
