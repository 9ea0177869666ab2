// Loaded with LD_PRELOAD: when the first number of the file that FAILING_MEMORY names counts down to 0, that allocation of an addon
// throws std::bad_alloc, and so do as many behind it as the third number says. The second number counts what has failed.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

struct Control {
  std::atomic<int> left, failed, more;
};

Control* Open() {
  const char* name = std::getenv("FAILING_MEMORY");
  const int file = name ? open(name, O_RDWR) : -1;
  void* mapped = file < 0 ? MAP_FAILED : mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<Control*>(mapped);
}

bool IsOfAddon(const void* caller) {
  Dl_info info;
  return dladdr(caller, &info) && info.dli_fname && std::strstr(info.dli_fname, ".node");
}

void* Allocate(size_t size, const void* caller) {
  static Control* const control = Open();
  const bool is_begun = control && control->failed > 0;
  if (control && (is_begun ? control->more > 0 : control->left > 0) && IsOfAddon(caller)) {
    if (is_begun ? --control->more >= 0 : --control->left == 0) {
      ++control->failed;
      throw std::bad_alloc();
    }
  }
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(size_t size) { return Allocate(size, __builtin_return_address(0)); }
void* operator new[](size_t size) { return Allocate(size, __builtin_return_address(0)); }
