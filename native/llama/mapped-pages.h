// A model's file -> its pages, out of this process's memory.
#pragma once
#include <string>

namespace onpolicy {

// Gives the mapped pages of a GGUF file, and of the parts beside it, back to the system. They stay mapped: what is read again comes from
// the system's cache of files. Does nothing but on Linux.
void ReleaseMappedPages(const std::string& path);

}  // namespace onpolicy
