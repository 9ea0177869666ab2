// The system -> facts about its cores: how many this process may use, how many are fast, and how long they computed.
#pragma once
#include <optional>
#include <string>

namespace onpolicy {

// Times in seconds. Only differences between two readings have a meaning.
struct CoreTimes {
  double now = 0;   // reading of a steady clock
  double idle = 0;  // time that cores were idle or ran work of lower priority, summed over the cores that this process may use
  double own = 0;   // time that cores computed for this process
};

// Returns the time of the steady clock.
double SteadySeconds();

// Returns nullopt if the system does not report it. `statistics` is the file with Linux's counters.
std::optional<CoreTimes> ReadCoreTimes(const std::string& statistics = "/proc/stat");

// Returns the number of cores that this process may use: those of its affinity mask, limited by the CPU quota of its container.
int UsableCores();

// Returns the number of cores that the CPU quota of this process's control group allows, rounded down to at least 1; 0 without a quota.
// Both versions of control groups are read. The smallest quota of the group and the groups around it counts. `root`: the folder that has
// /proc and /sys.
int QuotaCores(const std::string& root);

// Returns the number of logical cores without efficiency cores, because all threads of a computation wait for the slowest one. Returns 0 if
// the system does not tell them apart. `devices`: the folder of Linux's devices, /sys/devices.
int PerformanceCores(const std::string& devices);

}  // namespace onpolicy
