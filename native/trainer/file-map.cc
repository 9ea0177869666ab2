#include "trainer/file-map.h"

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

Status FileMap::Open(const std::string& path, std::unique_ptr<FileMap>* out) {
  HANDLE file = CreateFileW(FilePath(path).c_str(), GENERIC_READ, FILE_SHARE_READ, nullptr,
                            OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr);
  if (file == INVALID_HANDLE_VALUE) return Status::Fail("MODEL_NOT_FOUND", "cannot open " + path);
  LARGE_INTEGER size{};
  GetFileSizeEx(file, &size);
  HANDLE mapping = CreateFileMappingW(file, nullptr, PAGE_READONLY, 0, 0, nullptr);
  CloseHandle(file);
  void* data = mapping ? MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0) : nullptr;
  if (mapping) CloseHandle(mapping);
  if (!data) return Status::Fail("MODEL_INVALID", "cannot map " + path);
  out->reset(new FileMap);
  (*out)->data_ = static_cast<char*>(data);
  (*out)->size_ = static_cast<size_t>(size.QuadPart);
  return Status::Ok();
}

FileMap::~FileMap() {
  if (data_) UnmapViewOfFile(data_);
}

#else

Status FileMap::Open(const std::string& path, std::unique_ptr<FileMap>* out) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return Status::Fail("MODEL_NOT_FOUND", "cannot open " + path);
  struct stat info {};
  void* data = MAP_FAILED;
  if (fstat(file, &info) == 0 && info.st_size > 0)
    data = mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (data == MAP_FAILED) return Status::Fail("MODEL_INVALID", "cannot map " + path);
  out->reset(new FileMap);
  (*out)->data_ = static_cast<char*>(data);
  (*out)->size_ = static_cast<size_t>(info.st_size);
  return Status::Ok();
}

FileMap::~FileMap() {
  if (data_) munmap(data_, size_);
}

#endif

}  // namespace onpolicy::training
