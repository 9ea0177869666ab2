#include "trainer/weights/file-map.h"

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include "base/file-path.h"
#else
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace onpolicy::training {

#ifdef _WIN32

std::unique_ptr<FileMap> FileMap::Open(const std::string& path) {
  HANDLE file = CreateFileW(FilePath(path).c_str(), GENERIC_READ, FILE_SHARE_READ, nullptr,
                            OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr);
  if (file == INVALID_HANDLE_VALUE) throw Failure("MODEL_NOT_FOUND", "cannot open " + path);
  LARGE_INTEGER size{};
  GetFileSizeEx(file, &size);
  HANDLE mapping = CreateFileMappingW(file, nullptr, PAGE_READONLY, 0, 0, nullptr);
  CloseHandle(file);
  void* data = mapping ? MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0) : nullptr;
  if (mapping) CloseHandle(mapping);
  if (!data) throw Failure("MODEL_INVALID", "cannot map " + path);
  return std::unique_ptr<FileMap>(new FileMap(static_cast<char*>(data), static_cast<size_t>(size.QuadPart)));
}

FileMap::~FileMap() { UnmapViewOfFile(data_); }

#else

std::unique_ptr<FileMap> FileMap::Open(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw Failure("MODEL_NOT_FOUND", "cannot open " + path);
  struct stat info {};
  void* data = MAP_FAILED;
  if (fstat(file, &info) == 0 && info.st_size > 0)
    data = mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (data == MAP_FAILED) throw Failure("MODEL_INVALID", "cannot map " + path);
  return std::unique_ptr<FileMap>(new FileMap(static_cast<char*>(data), static_cast<size_t>(info.st_size)));
}

FileMap::~FileMap() { munmap(data_, size_); }

#endif

}  // namespace onpolicy::training
