#include "engine-assumptions/library.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/file-path.h"
#include "engine-assumptions/asserts.h"
#include "engine-assumptions/attention/hook.h"
#include "engine-assumptions/cpu-buffers.h"
#include "engine-assumptions/matmul/install.h"
#include "engine-assumptions/pool/computation.h"
#include "engine-assumptions/shared-library.h"
#include "engine-assumptions/table/assumptions.h"
#include "engine-assumptions/table/backend-tables.h"
#include "engine-assumptions/table/names.h"
#include "engine-assumptions/table/optional-functions.h"

namespace onpolicy {
namespace {

namespace fs = std::filesystem;

// Returns the path in UTF-8, as paths are everywhere else. On Windows, string() would use the code page.
std::string TextOf(const fs::path& path) {
  const auto text = path.u8string();
  return std::string(text.begin(), text.end());
}

// Returns the path and version of a loaded llama library of another version, such as "/.../libllama.so (0.5.0)". Returns an empty string if
// there is none. Libraries of one process find each other by name: two releases would call each other's functions.
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

// Returns the one file in `folder` named [lib]<stem>[.<anything>].{so,dylib,dll}, or an empty string if there is none.
std::string FindLibraryFile(const std::string& folder, const std::string& stem) {
  std::error_code error;
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(FilePath(folder), error)) {
    const std::string name = TextOf(entry.path().filename());
    const std::string bare = name.rfind("lib", 0) == 0 ? name.substr(3) : name;
    const bool is_library = entry.path().extension() == ".so" || entry.path().extension() == ".dylib" ||
                            entry.path().extension() == ".dll";
    if (is_library && (bare.rfind(stem + ".", 0) == 0)) found.push_back(TextOf(entry.path()));
  }
  std::sort(found.begin(), found.end());
  return found.empty() ? "" : found.front();
}

std::mutex g_library_mutex;
bool g_is_open = false;

// Disables the asserts of the engine's libraries and of the backends that they opened.
void IgnoreAllAsserts(const std::vector<void*>& handles) {
  for (const void* handle : handles) IgnoreAsserts(handle);
  for (size_t i = 0; i < Api().ggml_backend_dev_count(); ++i) {
    ggml_backend_reg_t backend = Api().ggml_backend_dev_backend_reg(Api().ggml_backend_dev_get(i));
    IgnoreAsserts(reinterpret_cast<const void*>(backend->iface.get_name));
  }
}

size_t g_largest_buffer = 0;

// Limits the size of the CPU's buffers, so that larger allocations are split. ggml's own buffer types have no limit; the type of packed
// weights sets its own, because it takes memory from the system.
void LimitBuffers(ggml_backend_dev_t cpu, ggml_backend_reg_t reg, size_t largest_buffer) {
  if (largest_buffer == 0) return;
  g_largest_buffer = largest_buffer;
  const auto limit = [](ggml_backend_buffer_type_t type) {
    if (!type->iface.get_max_size) type->iface.get_max_size = [](ggml_backend_buffer_type_t) { return g_largest_buffer; };
  };
  limit(Api().ggml_backend_dev_buffer_type(cpu));
  const auto extra_types =
      reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(Api().ggml_backend_reg_get_proc_address(reg, kExtraTypes));
  for (auto* type = extra_types ? extra_types(cpu) : nullptr; type && *type; ++type) limit(*type);
}

std::mutex g_log_mutex;
std::map<int, LogSink> g_log_sinks;
int g_next_log_sink = 1;

void OnLog(enum ggml_log_level level, const char* text, void*) { LogLine(static_cast<int>(level), text); }

}  // namespace

bool HasGpuDevice() {
  const Library& api = Api();
  for (size_t i = 0; i < api.ggml_backend_dev_count(); ++i) {
    const auto type = api.ggml_backend_dev_type(api.ggml_backend_dev_get(i));
    if (type == GGML_BACKEND_DEVICE_TYPE_GPU || type == GGML_BACKEND_DEVICE_TYPE_IGPU) return true;
  }
  return false;
}

void OpenLibrary(const std::string& folder, const std::string& wanted_version, const std::vector<std::string>& extra_backends,
                 size_t largest_buffer) {
  std::lock_guard<std::mutex> lock(g_library_mutex);
  if (g_is_open) {
    if (g_library.folder == folder) return;
    throw Failure("NATIVE_UNAVAILABLE", "this process already runs the engine's libraries from " + g_library.folder +
                                            "; they cannot be changed to " + folder);
  }
  if (const std::string other = OtherRelease(wanted_version); !other.empty())
    throw Failure("NATIVE_UNAVAILABLE", "this process already runs another release of llama.cpp, " + other + ", and two in one process would call " +
                                            "each other's functions; install one release of node-llama-cpp for both, or give the runtime `isolate: true`");
  Library library;
  library.folder = folder;
  std::vector<void*> handles;
  for (const char* stem : {"ggml-base", "ggml", "llama"}) {
    const std::string file = FindLibraryFile(folder, stem);
    if (file.empty()) throw Failure("NATIVE_UNAVAILABLE", "no " + std::string(stem) + " library in " + folder);
    void* handle = OpenSharedLibrary(file, Names::kShared);
    if (!handle) throw Failure("NATIVE_UNAVAILABLE", "cannot open " + file + ": " + LibraryError());
    handles.push_back(handle);
  }
  const auto symbol_of = [&](const char* name) -> void* {
    for (void* handle : handles)
      if (void* symbol = LibrarySymbol(handle, name)) return symbol;
    return nullptr;
  };
  const auto resolve = [&](auto& function, const char* name, std::string* missing) {
    void* symbol = symbol_of(name);
    if (!symbol) *missing += (missing->empty() ? "" : ", ") + std::string(name);
    function.Set(symbol, name);
  };
  std::string missing, missing_of_training;
#define ONPOLICY_RESOLVE(name) resolve(library.name, #name, &missing);
  ONPOLICY_LIBRARY_FUNCTIONS(ONPOLICY_RESOLVE)
  ONPOLICY_FREEING_FUNCTIONS(ONPOLICY_RESOLVE)
#undef ONPOLICY_RESOLVE
#define ONPOLICY_RESOLVE(name) resolve(library.name, #name, &missing_of_training);
  ONPOLICY_TRAINING_FUNCTIONS(ONPOLICY_RESOLVE)
#undef ONPOLICY_RESOLVE
  library.version = library.llama_version ? library.llama_version() : "unknown";
  // A build suffix such as "-dev" does not change the C API.
  if (library.version.substr(0, library.version.find('-')) != wanted_version || !missing.empty())
    throw Failure("NATIVE_UNAVAILABLE", "the engine's libraries in " + folder + " are version " + library.version +
                                            "; this addon needs version " + wanted_version +
                                            (missing.empty() ? "" : " (missing there: " + missing + ")"));
  FindOptionalFunctions(&library, symbol_of);
  g_library = std::move(library);
  const Library& api = Api();
  if (const std::string moved = MovedDefault(); !Check(Assumed::kDefaults, moved))
    throw Failure("NATIVE_UNAVAILABLE", "the engine's libraries in " + folder + " have another layout than those of version " + wanted_version +
                                            ", for which this addon was built: " + moved);
  Check(Assumed::kTrainingFunctions, missing_of_training.empty() ? "" : "the libraries export no " + missing_of_training);
  Check(Assumed::kSequences, api.llama_max_parallel_sequences() < kSequences ? "contexts have fewer sequence numbers" : "");
  CatchFatal();
  api.llama_log_set(OnLog, nullptr);
  api.llama_backend_init();
  api.ggml_backend_load_all_from_path(folder.c_str());
  for (const std::string& file : extra_backends)
    if (!HasGpuDevice()) api.ggml_backend_load(file.c_str());
  IgnoreAllAsserts(handles);
  ggml_backend_dev_t cpu = api.ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  if (!cpu) throw Failure("NATIVE_UNAVAILABLE", "no CPU backend fits this machine in " + folder);
  ggml_backend_reg_t reg = api.ggml_backend_dev_backend_reg(cpu);
  const auto find_of_cpu = [reg](auto& function, const char* name) {
    function.Set(Api().ggml_backend_reg_get_proc_address(reg, name), name);
  };
  find_of_cpu(g_library.ggml_threadpool_new, "ggml_threadpool_new");
  find_of_cpu(g_library.ggml_backend_cpu_set_threadpool, "ggml_backend_cpu_set_threadpool");
  find_of_cpu(g_library.ggml_backend_set_n_threads, "ggml_backend_set_n_threads");
  GuardComputations(cpu);
  if (matmul::Install(cpu)) attention::Install(cpu);  // matmuls first: the engine reads the list of types once
  UseSystemMemory(cpu);
  LimitBuffers(cpu, reg, largest_buffer);
  g_is_open = true;
}

void RequireOneRelease() {
  std::lock_guard<std::mutex> lock(g_library_mutex);
  if (!g_is_open) return;
  if (const std::string other = OtherRelease(Api().version); !other.empty())
    throw Failure("NATIVE_UNAVAILABLE", "another thread of this process has opened another release of llama.cpp, " + other + ", beside " +
                                            Api().version + " of onpolicy: the two call each other's functions; install one release of " +
                                            "node-llama-cpp for both, or give the runtime `isolate: true`");
}

bool IsLibraryOpen() {
  std::lock_guard<std::mutex> lock(g_library_mutex);
  return g_is_open;
}

bool CanOpenSystemLibrary(const std::string& name) {
  void* handle = OpenSharedLibrary(name, Names::kOwn);
  if (handle) CloseSharedLibrary(handle);
  return handle != nullptr;
}

int AddLogSink(LogSink sink) {
  std::lock_guard<std::mutex> lock(g_log_mutex);
  g_log_sinks.emplace(g_next_log_sink, std::move(sink));
  return g_next_log_sink++;
}

void LogLine(int level, const char* text) {
  std::lock_guard<std::mutex> lock(g_log_mutex);
  try {  // the engine also logs on its own threads
    for (const auto& [id, sink] : g_log_sinks) sink(level, text ? text : "");
  } catch (const std::bad_alloc&) {  // the line is lost
  }
}

void RemoveLogSink(int id) {
  std::lock_guard<std::mutex> lock(g_log_mutex);
  g_log_sinks.erase(id);
}

}  // namespace onpolicy
