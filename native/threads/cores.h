// What the system says of its cores: how many this process may use, which of them are fast, and what they did.
#pragma once
#include <optional>
#include <string>

namespace onpolicy {

// Seconds; only differences mean something.
struct CoreTimes {
  double now = 0;   // of a clock
  double idle = 0;  // in which cores did nothing that this process would not go before, summed over those that it may use
  double own = 0;   // in which cores computed for this process
};

// Of the clock.
double SteadySeconds();

// None where the system does not tell. `statistics`: where Linux has its counters.
std::optional<CoreTimes> ReadCoreTimes(const std::string& statistics = "/proc/stat");

// Cores that this process may use.
int UsableCores();

// Logical cores that are no efficiency cores; 0 where the system does not tell them apart. All threads of a computation wait for the
// slowest one. `devices`: where Linux describes its devices, /sys/devices.
int PerformanceCores(const std::string& devices);

}  // namespace onpolicy
