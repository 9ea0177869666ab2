// The libraries that this process has loaded -> whether another llama.cpp than ours is among them.
#pragma once
#include <string>

namespace onpolicy {

// Returns the path and version of a loaded llama library of another version, such as "/.../libllama.so (0.5.0)". Returns an empty string if
// there is none. Libraries of one process find each other by name: two releases would call each other's functions.
std::string OtherRelease(const std::string& version);

}  // namespace onpolicy
