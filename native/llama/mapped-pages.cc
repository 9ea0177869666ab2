#include "llama/mapped-pages.h"

#ifdef __linux__
#include <sys/mman.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/file-path.h"

namespace onpolicy {

void ReleaseMappedPages(const std::string& path) {
  std::error_code error;
  std::string name = std::filesystem::canonical(FilePath(path), error).string();
  if (error) return;
  if (const size_t part = name.rfind("-00001-of-"); part != std::string::npos) name.resize(part);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    char access[5] = {};
    // Only what cannot be written: dropped pages of such a map are those of the file.
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, access) != 3 || access[1] != '-') continue;
    const size_t file = line.find('/');
    if (file == std::string::npos || line.compare(file, name.size(), name) != 0) continue;
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
}

}  // namespace onpolicy
#else
namespace onpolicy {
void ReleaseMappedPages(const std::string&) {}
}  // namespace onpolicy
#endif
