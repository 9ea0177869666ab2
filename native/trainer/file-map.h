// A file's bytes as memory that the system pages in on demand and shares with others who map the same file.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "base/status.h"

namespace onpolicy::training {

class FileMap {
 public:
  static Status Open(const std::string& path, std::unique_ptr<FileMap>* out);
  ~FileMap();
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;

  char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  FileMap() = default;
  char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace onpolicy::training
