// The processor's cores -> how many of them are fast.
#pragma once
#include <string>

namespace onpolicy {

// Logical cores that are no efficiency cores; 0 where the system does not tell them apart. All threads of a computation wait for the
// slowest one. `devices`: where Linux describes its devices, /sys/devices.
int PerformanceCores(const std::string& devices);

}  // namespace onpolicy
