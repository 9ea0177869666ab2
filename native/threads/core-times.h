// The system's counters -> what the cores of this process did: nothing, or work of this process.
#pragma once
#include <optional>

namespace onpolicy {

// Seconds; only differences mean something.
struct CoreTimes {
  double now = 0;   // of a clock
  double idle = 0;  // in which cores did nothing, summed over those that this process may use
  double own = 0;   // in which cores computed for this process
};

// Of the clock.
double SteadySeconds();

// None where the system does not tell.
std::optional<CoreTimes> ReadCoreTimes();

// Cores that this process may use.
int UsableCores();

}  // namespace onpolicy
