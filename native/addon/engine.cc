// llama.cpp's libraries, devices and log, and functions of the system: returning memory, counting cores.
#include <napi.h>

#include "addon/arguments.h"
#include "addon/async-task.h"
#include "addon/environment.h"
#include "addon/errors.h"
#include "addon/register.h"
#include "base/cores.h"
#include "engine-assumptions/library.h"
#include "engine-assumptions/table/assumptions.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace onpolicy {
namespace {

// openLibrary(folder, wantedVersion, extraBackends, largestBuffer) -> Promise<void>
Napi::Value OpenLibraryAsync(const Napi::CallbackInfo& info) {
  return AsyncTask::Run(info.Env(), [folder = ReadText(info[0], "folder"), version = ReadText(info[1], "version"),
                                     extra = ReadTexts(info[2], "extraBackends"),
                                     largest = ReadInteger<size_t>(info[3], "largestBuffer")] {
    OpenLibrary(folder, version, extra, largest);
  });
}

// requireOneRelease(): throws if another release of the engine was opened in this process after ours.
void RequireRelease(const Napi::CallbackInfo& info) {
  try {
    RequireOneRelease();
  } catch (const Failure& failure) {
    throw ToError(info.Env(), failure.status());
  }
}

// devices() -> { name, description, kind: 'cpu' | 'gpu' | 'other', freeBytes, totalBytes }[]
Napi::Value Devices(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Napi::Array list = Napi::Array::New(env);
  if (!IsLibraryOpen()) return list;
  const Library& api = Api();
  for (size_t i = 0; i < api.ggml_backend_dev_count(); ++i) {
    ggml_backend_dev_t device = api.ggml_backend_dev_get(i);
    const auto type = api.ggml_backend_dev_type(device);
    size_t free_bytes = 0, total_bytes = 0;
    api.ggml_backend_dev_memory(device, &free_bytes, &total_bytes);
    const bool gpu = type == GGML_BACKEND_DEVICE_TYPE_GPU || type == GGML_BACKEND_DEVICE_TYPE_IGPU;
    const char* kind = gpu ? "gpu" : type == GGML_BACKEND_DEVICE_TYPE_CPU ? "cpu" : "other";
    const Napi::Object entry =
        ObjectOf(env, "name", api.ggml_backend_dev_name(device), "description", api.ggml_backend_dev_description(device), "kind", kind,
                 "freeBytes", free_bytes, "totalBytes", total_bytes);
    list.Set(static_cast<uint32_t>(i), entry);
  }
  return list;
}

// engineState() -> { version, folder, assumptions: { name, text, checked, without, holds, problem }[] }, or null before openLibrary.
Napi::Value EngineState(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  if (!IsLibraryOpen()) return env.Null();
  constexpr const char* kChecked[] = {"opening", "first pass", "use"};
  Napi::Array rows = Napi::Array::New(env);
  for (uint32_t i = 0; i < static_cast<uint32_t>(Assumed::kCount); ++i) {
    const auto row = static_cast<Assumed>(i);
    const Assumption& text = TextOf(row);
    const Finding finding = FindingOf(row);
    const Napi::Object entry = ObjectOf(env, "name", text.name, "text", text.text, "checked", kChecked[static_cast<int>(text.checked)],
                                        "without", text.without, "problem", finding.problem);
    if (finding.state == Finding::kUnknown) entry.Set("holds", env.Null());
    else entry.Set("holds", finding.state == Finding::kHolds);
    rows.Set(i, entry);
  }
  return ObjectOf(env, "version", Api().version, "folder", Api().folder, "assumptions", rows);
}

// onBrokenAssumption(callback): the callback gets one line for each assumption that does not hold, once per process.
void OnBrokenAssumption(const Napi::CallbackInfo& info) {
  struct Listener {
    Napi::ThreadSafeFunction function;
    int id = 0;
  };
  auto* listener = new Listener;
  listener->function = Napi::ThreadSafeFunction::New(info.Env(), info[0].As<Napi::Function>(), "onpolicy assumptions", 0, 1);
  listener->function.Unref(info.Env());
  listener->id = AddBreakListener([function = listener->function](const std::string& line) {
    function.NonBlockingCall([line](Napi::Env env, Napi::Function callback) { callback.Call({Napi::String::New(env, line)}); });
  });
  napi_add_env_cleanup_hook(
      info.Env(),
      [](void* data) {
        auto* listener = static_cast<Listener*>(data);
        RemoveBreakListener(listener->id);
        listener->function.Release();
        delete listener;
      },
      listener);
}

// setLog(callback) -> a function that removes it again. The callback gets (level, text) of every engine log line.
Napi::Value SetLog(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  struct Sink {
    Napi::ThreadSafeFunction function;
    int id = 0;
  };
  auto* sink = new Sink;
  sink->function = Napi::ThreadSafeFunction::New(env, info[0].As<Napi::Function>(), "onpolicy log", 0, 1);
  sink->function.Unref(env);
  sink->id = AddLogSink([function = sink->function](int level, const std::string& text) {
    function.NonBlockingCall([level, text](Napi::Env env, Napi::Function callback) {
      try {
        callback.Call({Napi::Number::New(env, level), Napi::String::New(env, text)});
      } catch (const Napi::Error&) {
        // A log callback that throws must not disturb the engine.
      }
    });
  });
  auto remove = [](void* data) {
    auto* sink = static_cast<Sink*>(data);
    RemoveLogSink(sink->id);
    sink->function.Release();
    delete sink;
  };
  napi_add_env_cleanup_hook(env, remove, sink);
  auto removed = std::make_shared<bool>(false);
  return Napi::Function::New(env, [sink, removed, remove](const Napi::CallbackInfo& info) {
    if (*removed) return;
    *removed = true;
    napi_remove_env_cleanup_hook(info.Env(), remove, sink);
    remove(sink);
  });
}

// stopThreads(): ends every thread of this environment and closes its contexts. Must be called when the process exits.
void StopThreads(const Napi::CallbackInfo& info) { Environment::Of(info.Env()).StopThreads(); }

Napi::Value CanOpen(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), CanOpenSystemLibrary(ReadText(info[0], "name")));
}

// returnMemory() -> Promise<void>. glibc retains freed blocks of up to 32 MB, and most weights are that small.
Napi::Value ReturnMemory(const Napi::CallbackInfo& info) {
  return AsyncTask::Run(info.Env(), [] {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
  });
}

// quotaCores(root) -> number: 0 if no container limits the CPU time of this process.
Napi::Value CountQuotaCores(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), QuotaCores(ReadText(info[0], "root")));
}

// performanceCores(devices) -> number: 0 if the system does not tell its cores apart.
Napi::Value CountPerformanceCores(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), PerformanceCores(ReadText(info[0], "devices")));
}

}  // namespace

void RegisterEngine(Napi::Env env, Napi::Object exports) {
  exports.Set("openLibrary", Napi::Function::New(env, OpenLibraryAsync));
  exports.Set("requireOneRelease", Napi::Function::New(env, RequireRelease));
  exports.Set("canOpenSystemLibrary", Napi::Function::New(env, CanOpen));
  exports.Set("devices", Napi::Function::New(env, Devices));
  exports.Set("engineState", Napi::Function::New(env, EngineState));
  exports.Set("onBrokenAssumption", Napi::Function::New(env, OnBrokenAssumption));
  exports.Set("stopThreads", Napi::Function::New(env, StopThreads));
  exports.Set("setLog", Napi::Function::New(env, SetLog));
  exports.Set("quotaCores", Napi::Function::New(env, CountQuotaCores));
  exports.Set("performanceCores", Napi::Function::New(env, CountPerformanceCores));
  exports.Set("returnMemory", Napi::Function::New(env, ReturnMemory));
}

}  // namespace onpolicy
