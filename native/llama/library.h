// A folder of shared libraries -> the table of their functions, and the engine's log.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/engine.h"
#include "base/status.h"

namespace onpolicy {

// Whether a backend has found a GPU. Backend libraries for GPUs load on machines without one, too.
bool HasGpuDevice();

// Opens the libraries in `folder` and their backends, once per process: a second call with another folder is an error.
// `wanted_version`: what this addon was built for; another one is an error that says so.
// `extra_backends`: further backend files, tried in order when no GPU device was found.
// `largest_buffer`: caches, weights and graphs in the memory of the CPU are cut into buffers of at most so many bytes; 0: they are not.
void OpenLibrary(const std::string& folder, const std::string& wanted_version, const std::vector<std::string>& extra_backends,
                 size_t largest_buffer);

bool IsLibraryOpen();

// Whether a system library such as the CUDA driver's can be opened.
bool CanOpenSystemLibrary(const std::string& name);

// Receives every log line of the engine, on any thread. `level` as in ggml_log_level.
using LogSink = std::function<void(int level, const std::string& text)>;
// Adds a sink and returns its id; RemoveLogSink forgets it.
int AddLogSink(LogSink sink);
void RemoveLogSink(int id);
// Sends a line to all sinks.
void LogLine(int level, const char* text);

}  // namespace onpolicy
