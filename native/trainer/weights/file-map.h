// A file's bytes as memory that the system pages in on demand and shares with other mappings of the same file.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "base/status.h"

namespace onpolicy::training {

class FileMap {
 public:
  static std::unique_ptr<FileMap> Open(const std::string& path);
  ~FileMap();
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;

  char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  FileMap(char* data, size_t size) : data_(data), size_(size) {}

  char* data_;
  size_t size_;
};

}  // namespace onpolicy::training
