// UTF-8 text -> a path of the file system. A path made of plain chars would be read in the code page of Windows.
#pragma once
#include <filesystem>
#include <string>

namespace onpolicy {

inline std::filesystem::path FilePath(const std::string& text) {
  return std::filesystem::path(std::u8string(text.begin(), text.end()));
}

}  // namespace onpolicy
