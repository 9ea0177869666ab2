#include "llama/library.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>

#include "attention/hook.h"
#include "base/file-path.h"
#include "llama/asserts.h"
#include "llama/cpu-buffers.h"
#include "llama/shared-library.h"
#include "matmul/install.h"

namespace onpolicy {
namespace {

namespace fs = std::filesystem;

// UTF-8, as paths are everywhere else: string() would be in the code page of Windows.
std::string TextOf(const fs::path& path) {
  const auto text = path.u8string();
  return std::string(text.begin(), text.end());
}

// The one file in `folder` named [lib]<stem>[.<anything>].{so,dylib,dll}; empty when there is none.
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

// Of the engine's libraries and of the backends they opened.
void IgnoreAllAsserts(const std::vector<void*>& handles) {
  for (const void* handle : handles) IgnoreAsserts(handle);
  for (size_t i = 0; i < Api().ggml_backend_dev_count(); ++i) {
    ggml_backend_reg_t backend = Api().ggml_backend_dev_backend_reg(Api().ggml_backend_dev_get(i));
    IgnoreAsserts(reinterpret_cast<const void*>(backend->iface.get_name));
  }
}

size_t g_largest_buffer = 0;

// Cuts what the CPU allocates into several buffers. ggml's own types take memory of any size in one piece; that of packed weights, which is
// no allocator's, may be.
void LimitBuffers(ggml_backend_dev_t cpu, ggml_backend_reg_t reg, size_t largest_buffer) {
  if (largest_buffer == 0) return;
  g_largest_buffer = largest_buffer;
  const auto limit = [](ggml_backend_buffer_type_t type) {
    if (!type->iface.get_max_size) type->iface.get_max_size = [](ggml_backend_buffer_type_t) { return g_largest_buffer; };
  };
  limit(Api().ggml_backend_dev_buffer_type(cpu));
  const auto extra_types = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(
      Api().ggml_backend_reg_get_proc_address(reg, "ggml_backend_dev_get_extra_bufts"));
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
  std::string missing;
  auto resolve = [&](const char* name) -> void* {
    for (void* handle : handles)
      if (void* symbol = LibrarySymbol(handle, name)) return symbol;
    missing += missing.empty() ? name : std::string(", ") + name;
    return nullptr;
  };
#define ONPOLICY_RESOLVE(name) library.name = reinterpret_cast<decltype(library.name)>(resolve(#name));
  ONPOLICY_LIBRARY_FUNCTIONS(ONPOLICY_RESOLVE)
#undef ONPOLICY_RESOLVE
  const auto find = [&](auto& function, std::initializer_list<const char*> names) {
    for (const char* name : names)
      for (void* handle : handles)
        if (void* symbol = LibrarySymbol(handle, name)) function = reinterpret_cast<std::decay_t<decltype(function)>>(symbol);
  };
  find(library.set_embeddings_nextn,
       {"_Z26llama_set_embeddings_nextnP13llama_contextbb", "?llama_set_embeddings_nextn@@YAXPEAUllama_context@@_N1@Z"});
  find(library.get_embeddings_nextn_ith,
       {"_Z30llama_get_embeddings_nextn_ithP13llama_contexti", "?llama_get_embeddings_nextn_ith@@YAPEAMPEAUllama_context@@H@Z"});
  find(library.set_nextn_layer_offset,
       {"_Z28llama_set_nextn_layer_offsetP13llama_contexti", "?llama_set_nextn_layer_offset@@YAXPEAUllama_context@@H@Z"});
  find(library.set_embeddings_layer_inp,
       {"_Z30llama_set_embeddings_layer_inpP13llama_contextjb", "?llama_set_embeddings_layer_inp@@YAXPEAUllama_context@@I_N@Z"});
  find(library.get_embeddings_layer_inp,
       {"_Z30llama_get_embeddings_layer_inpP13llama_contextj", "?llama_get_embeddings_layer_inp@@YAPEAMPEAUllama_context@@I@Z"});
  library.version = library.llama_version ? library.llama_version() : "unknown";
  // A build suffix such as "-dev" does not change the C API.
  if (library.version.substr(0, library.version.find('-')) != wanted_version || !missing.empty())
    throw Failure("NATIVE_UNAVAILABLE", "the engine's libraries in " + folder + " are version " + library.version +
                                            "; this addon needs version " + wanted_version +
                                            (missing.empty() ? "" : " (missing there: " + missing + ")"));
  g_library = std::move(library);
  const Library& api = Api();
  api.ggml_set_abort_callback(OnFatal);
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
    function = reinterpret_cast<std::decay_t<decltype(function)>>(Api().ggml_backend_reg_get_proc_address(reg, name));
  };
  find_of_cpu(g_library.ggml_threadpool_new, "ggml_threadpool_new");
  find_of_cpu(g_library.ggml_backend_cpu_set_threadpool, "ggml_backend_cpu_set_threadpool");
  find_of_cpu(g_library.ggml_backend_set_n_threads, "ggml_backend_set_n_threads");
  if (matmul::Install(cpu).kernels) attention::Install(cpu);  // first: the engine keeps the list of types that it is asked for
  UseSystemMemory(cpu);
  LimitBuffers(cpu, reg, largest_buffer);
  g_is_open = true;
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
  try {  // the engine logs on threads of its own
    for (const auto& [id, sink] : g_log_sinks) sink(level, text ? text : "");
  } catch (const std::bad_alloc&) {  // the line is lost
  }
}

void RemoveLogSink(int id) {
  std::lock_guard<std::mutex> lock(g_log_mutex);
  g_log_sinks.erase(id);
}

}  // namespace onpolicy
