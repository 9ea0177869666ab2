#include "base/cores.h"

#include <algorithm>
#include <chrono>
#include <thread>

#if defined(_WIN32)
#include <windows.h>

#include <bitset>
#include <map>
#include <vector>
#elif defined(__APPLE__)
#include <mach/mach.h>
#include <sys/resource.h>
#include <sys/sysctl.h>
#include <unistd.h>
#elif defined(__linux__)
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <vector>
#endif

namespace onpolicy {

double SteadySeconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

#if defined(_WIN32)

namespace {

double Seconds(const FILETIME& time) { return 1e-7 * (4294967296.0 * time.dwHighDateTime + time.dwLowDateTime); }

}  // namespace

std::optional<CoreTimes> ReadCoreTimes(const std::string&) {
  DWORD_PTR own_cores = 0, all_cores = 0;
  FILETIME idle, kernel, user, created, ended;
  if (!GetProcessAffinityMask(GetCurrentProcess(), &own_cores, &all_cores) || own_cores != all_cores) return std::nullopt;
  CoreTimes times{SteadySeconds()};
  if (!GetSystemTimes(&idle, &kernel, &user)) return std::nullopt;
  times.idle = Seconds(idle);
  if (!GetProcessTimes(GetCurrentProcess(), &created, &ended, &kernel, &user)) return std::nullopt;
  times.own = Seconds(kernel) + Seconds(user);
  return times;
}

int PerformanceCores(const std::string&) {
  DWORD size = 0;
  GetLogicalProcessorInformationEx(RelationProcessorCore, nullptr, &size);
  std::vector<char> bytes(size);
  const auto at = [&](DWORD offset) {
    return reinterpret_cast<SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX*>(bytes.data() + offset);
  };
  if (size == 0 || !GetLogicalProcessorInformationEx(RelationProcessorCore, at(0), &size)) return 0;
  std::map<int, int> cores;  // by efficiency class, the fastest last
  for (DWORD offset = 0; offset < size; offset += at(offset)->Size) {
    const PROCESSOR_RELATIONSHIP& core = at(offset)->Processor;
    const int efficiency_class = (&core.Flags)[1];  // older headers have no name for this field
    cores[efficiency_class] += static_cast<int>(std::bitset<64>(core.GroupMask[0].Mask).count());
  }
  return cores.empty() ? 0 : cores.rbegin()->second;
}

#elif defined(__APPLE__)

std::optional<CoreTimes> ReadCoreTimes(const std::string&) {
  host_cpu_load_info_data_t load{};
  mach_msg_type_number_t count = HOST_CPU_LOAD_INFO_COUNT;
  rusage usage{};
  CoreTimes times{SteadySeconds()};
  if (host_statistics(mach_host_self(), HOST_CPU_LOAD_INFO, reinterpret_cast<host_info_t>(&load), &count) != KERN_SUCCESS ||
      getrusage(RUSAGE_SELF, &usage) != 0)
    return std::nullopt;
  times.idle = static_cast<double>(load.cpu_ticks[CPU_STATE_IDLE]) / static_cast<double>(sysconf(_SC_CLK_TCK));
  for (const timeval& part : {usage.ru_utime, usage.ru_stime})
    times.own += static_cast<double>(part.tv_sec) + 1e-6 * static_cast<double>(part.tv_usec);
  return times;
}

int PerformanceCores(const std::string&) {
  int count = 0;
  size_t size = sizeof count;
  return sysctlbyname("hw.perflevel0.logicalcpu", &count, &size, nullptr, 0) == 0 ? count : 0;
}

#elif defined(__linux__)

// Time that a core waits for a disk counts as idle, and so does work of a lower priority than this process's.
std::optional<CoreTimes> ReadCoreTimes(const std::string& statistics) {
  cpu_set_t cores;
  timespec own{};
  std::ifstream file(statistics);
  const bool is_nice = getpriority(PRIO_PROCESS, 0) > 0;
  if (sched_getaffinity(getpid(), sizeof cores, &cores) != 0 || clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own) != 0) return std::nullopt;
  CoreTimes times{SteadySeconds()};
  times.own = static_cast<double>(own.tv_sec) + 1e-9 * static_cast<double>(own.tv_nsec);
  double ticks = 0;
  std::string name, line;
  for (std::getline(file, line); file >> name && name.starts_with("cpu"); std::getline(file, line)) {
    const int core = std::stoi(name.substr(3));
    double user = 0, nice = 0, system = 0, idle = 0, waiting = 0;
    if (!(file >> user >> nice >> system >> idle >> waiting)) return std::nullopt;
    if (core < CPU_SETSIZE && CPU_ISSET(core, &cores)) ticks += idle + waiting + (is_nice ? 0 : nice);
  }
  if (ticks == 0) return std::nullopt;
  times.idle = ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
  return times;
}

// Intel's hybrid processors have a list such as "0-7,16". ARM's have a capacity for each core.
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

namespace {

// Returns the least quota, in cores, of a group and the groups around it; infinite without a quota. `read` returns the quota of one folder.
template <typename Read>
double LeastQuota(const std::string& mount, std::string group, Read read) {
  double least = std::numeric_limits<double>::infinity();
  for (;;) {
    if (const std::optional<double> quota = read(mount + group)) least = std::min(least, *quota);
    const size_t slash = group.rfind('/');
    if (group.empty() || slash == std::string::npos) return least;
    group.resize(slash);
  }
}

// Version 2: `50000 100000` or `max 100000`, microseconds of each period.
std::optional<double> ReadQuota(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  double quota = 0, period = 0;
  return file >> quota >> period && quota > 0 && period > 0 ? std::optional(quota / period) : std::nullopt;
}

// Version 1: the same numbers in two files; a quota of -1 means unlimited.
std::optional<double> ReadOldQuota(const std::string& folder) {
  std::ifstream quotas(folder + "/cpu.cfs_quota_us"), periods(folder + "/cpu.cfs_period_us");
  double quota = 0, period = 0;
  return quotas >> quota && periods >> period && quota > 0 && period > 0 ? std::optional(quota / period) : std::nullopt;
}

// Returns true if a list such as `cpu,cpuacct` contains the controller of CPU time.
bool HasCpu(const std::string& controllers) { return ("," + controllers + ",").find(",cpu,") != std::string::npos; }

}  // namespace

// Lines of /proc/self/cgroup are `0::/group` for version 2 and `4:cpu,cpuacct:/group` for version 1. In a container the mount may be the
// group itself, so a folder that does not exist is skipped.
int QuotaCores(const std::string& root) {
  const std::string mounts = root + "/sys/fs/cgroup";
  double least = std::numeric_limits<double>::infinity();
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1) == "/" ? "" : line.substr(second + 1);
    if (controllers.empty()) {
      least = std::min({least, LeastQuota(mounts, group, ReadQuota), LeastQuota(mounts + "/unified", group, ReadQuota)});
    } else if (HasCpu(controllers)) {
      for (const std::string& mount : {mounts + "/" + controllers, mounts + "/cpu"})
        least = std::min(least, LeastQuota(mount, group, ReadOldQuota));
    }
  }
  return std::isinf(least) ? 0 : static_cast<int>(std::clamp(least, 1.0, 1e6));
}

#else

std::optional<CoreTimes> ReadCoreTimes(const std::string&) { return std::nullopt; }
int PerformanceCores(const std::string&) { return 0; }

#endif

#if !defined(__linux__)

int QuotaCores(const std::string&) { return 0; }

#endif

int UsableCores() {
  int count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
#if defined(__linux__)
  cpu_set_t cores;
  if (sched_getaffinity(getpid(), sizeof cores, &cores) == 0) count = CPU_COUNT(&cores);
#endif
  const int quota = QuotaCores("");
  return quota > 0 ? std::min(count, quota) : count;
}

}  // namespace onpolicy
