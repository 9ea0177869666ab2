// A folder of shared libraries -> the table of their functions, and the engine's log.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/engine.h"
#include "base/status.h"

namespace onpolicy {

// Returns true if a backend has found a GPU. Backend libraries for GPUs also load on machines without one.
bool HasGpuDevice();

// Opens the libraries in `folder` and their backends, once per process; throws if called again with another folder.
// `wanted_version`: version that this addon was built for; throws if the libraries have another.
// `extra_backends`: further backend files, tried in order if no GPU device was found.
// `largest_buffer`: limit in bytes of one buffer in CPU memory; larger caches, weights and graphs are split. 0: no limit.
void OpenLibrary(const std::string& folder, const std::string& wanted_version, const std::vector<std::string>& extra_backends,
                 size_t largest_buffer);

bool IsLibraryOpen();

// Throws if another release of llama.cpp was opened in this process after ours.
void RequireOneRelease();

// Returns true if a system library, such as the CUDA driver's, can be opened.
bool CanOpenSystemLibrary(const std::string& name);

// Receives every log line of the engine, on any thread. `level` as in ggml_log_level.
using LogSink = std::function<void(int level, const std::string& text)>;
// Adds a sink and returns its id, which RemoveLogSink takes.
int AddLogSink(LogSink sink);
void RemoveLogSink(int id);
// Sends a line to all sinks.
void LogLine(int level, const char* text);

}  // namespace onpolicy
