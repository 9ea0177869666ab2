#include "threads/performance-cores.h"

#if defined(__linux__)
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <vector>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(_WIN32)
#include <windows.h>

#include <algorithm>
#include <bitset>
#include <map>
#include <vector>
#endif

namespace onpolicy {

#if defined(__linux__)

// Intel's hybrid processors have a list such as "0-7,16"; those of ARM a capacity for each core.
int PerformanceCores(const std::string& devices) {
  std::ifstream list(devices + "/cpu_core/cpus");
  int count = 0;
  for (std::string range; std::getline(list, range, ',');) {
    int first = 0, last = 0;
    const int numbers = std::sscanf(range.c_str(), "%d-%d", &first, &last);
    if (numbers > 0) count += numbers == 1 ? 1 : last - first + 1;
  }
  if (count > 0) return count;
  std::vector<int> capacities;
  for (int capacity = 0;; capacities.push_back(capacity)) {
    std::ifstream file(devices + "/system/cpu/cpu" + std::to_string(capacities.size()) + "/cpu_capacity");
    if (!(file >> capacity)) break;
  }
  if (capacities.empty()) return 0;
  const int largest = *std::max_element(capacities.begin(), capacities.end());
  return static_cast<int>(std::count_if(capacities.begin(), capacities.end(), [&](int one) { return 2 * one >= largest; }));
}

#elif defined(__APPLE__)

int PerformanceCores(const std::string&) {
  int count = 0;
  size_t size = sizeof count;
  return sysctlbyname("hw.perflevel0.logicalcpu", &count, &size, nullptr, 0) == 0 ? count : 0;
}

#elif defined(_WIN32)

int PerformanceCores(const std::string&) {
  DWORD size = 0;
  GetLogicalProcessorInformationEx(RelationProcessorCore, nullptr, &size);
  std::vector<char> bytes(size);
  const auto at = [&](DWORD offset) {
    return reinterpret_cast<SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX*>(bytes.data() + offset);
  };
  if (size == 0 || !GetLogicalProcessorInformationEx(RelationProcessorCore, at(0), &size)) return 0;
  std::map<int, int> cores;  // by class, the fastest last
  for (DWORD offset = 0; offset < size; offset += at(offset)->Size) {
    const PROCESSOR_RELATIONSHIP& core = at(offset)->Processor;
    const int efficiency_class = (&core.Flags)[1];  // older headers have no name for it
    cores[efficiency_class] += static_cast<int>(std::bitset<64>(core.GroupMask[0].Mask).count());
  }
  return cores.empty() ? 0 : cores.rbegin()->second;
}

#else

int PerformanceCores(const std::string&) { return 0; }

#endif

}  // namespace onpolicy
