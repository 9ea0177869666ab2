// A file -> an open library of the system, and what it exports.
#pragma once
#include <string>

namespace onpolicy {

// Whether libraries that are opened later find its names.
enum class Names { kShared, kOwn };

// Null on failure: LibraryError() says why. `path` is UTF-8.
void* OpenSharedLibrary(const std::string& path, Names names);
void CloseSharedLibrary(void* handle);
void* LibrarySymbol(void* handle, const char* name);
std::string LibraryError();

}  // namespace onpolicy
