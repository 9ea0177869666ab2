// A file -> an open library of the system, and its exported functions.
#pragma once
#include <string>
#include <vector>

namespace onpolicy {

// kShared: libraries that are opened later find the names of this one.
enum class Names { kShared, kOwn };

// Opens a library. Returns null on failure; LibraryError() then gives the reason. `path` is UTF-8.
void* OpenSharedLibrary(const std::string& path, Names names);
void CloseSharedLibrary(void* handle);
void* LibrarySymbol(void* handle, const char* name);
std::string LibraryError();

// Returns the paths of the libraries with this name that the process has loaded, such as those of libllama.so for "llama".
std::vector<std::string> LoadedLibraries(const std::string& name);

}  // namespace onpolicy
