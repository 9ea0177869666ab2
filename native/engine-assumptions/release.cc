#include "engine-assumptions/release.h"

#include <vector>

#include "engine-assumptions/shared-library.h"

namespace onpolicy {

std::string OtherRelease(const std::string& version) {
  for (const std::string& path : LoadedLibraries("llama")) {
    void* library = OpenSharedLibrary(path, Names::kOwn);  // one more reference to a loaded library
    if (!library) continue;
    const auto version_of = reinterpret_cast<const char* (*)()>(LibrarySymbol(library, "llama_version"));
    const std::string other = version_of ? version_of() : "an old version";
    CloseSharedLibrary(library);
    if (other.substr(0, other.find('-')) != version.substr(0, version.find('-'))) return path + " (" + other + ")";
  }
  return "";
}

}  // namespace onpolicy
