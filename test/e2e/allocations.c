// Loaded with LD_PRELOAD: refuses allocations of 2 GiB and more, as Electron's allocator does, those of whole pages too, and writes the largest one and the
// number of those refused to the file that ALLOCATIONS names.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static const size_t kLimit = (size_t)1 << 31;
static _Atomic size_t largest;
static _Atomic int refused;

static int IsTooLarge(size_t size) {
  size_t known = largest;
  while (size > known && !atomic_compare_exchange_weak(&largest, &known, size)) continue;
  if (size < kLimit) return 0;
  refused++;
  return 1;
}

void *__libc_malloc(size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void *__libc_calloc(size_t, size_t);

void *malloc(size_t size) { return IsTooLarge(size) ? NULL : __libc_malloc(size); }
void *realloc(void *memory, size_t size) { return IsTooLarge(size) ? NULL : __libc_realloc(memory, size); }
void *calloc(size_t count, size_t size) { return IsTooLarge(count * size) ? NULL : __libc_calloc(count, size); }
void *memalign(size_t alignment, size_t size) { return IsTooLarge(size) ? NULL : __libc_memalign(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void **memory, size_t alignment, size_t size) {
  void *made = memalign(alignment, size);
  if (!made) return ENOMEM;
  *memory = made;
  return 0;
}

void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) {
  if (file == -1 && protection != PROT_NONE && IsTooLarge(size)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return (void *)syscall(SYS_mmap, address, size, protection, flags, file, offset);
}
void *mmap64(void *address, size_t size, int protection, int flags, int file, off_t offset) {
  return mmap(address, size, protection, flags, file, offset);
}

__attribute__((destructor)) static void Report(void) {
  const char *name = getenv("ALLOCATIONS");
  FILE *file = name ? fopen(name, "w") : NULL;
  if (!file) return;
  fprintf(file, "{\"largest\":%zu,\"refused\":%d}\n", largest, refused);
  fclose(file);
}
