#include "media/library.h"

#include <atomic>
#include <mutex>

#include "llama/library.h"

#ifndef _WIN32
#include <dlfcn.h>
#endif

namespace onpolicy {
namespace {

std::mutex g_decoder_mutex;
std::atomic<const DecoderTable*> g_decoder{nullptr};

}  // namespace

Status OpenDecoder(const std::string& path) {
  std::lock_guard<std::mutex> lock(g_decoder_mutex);
  if (g_decoder) return Status::Ok();
#ifdef _WIN32
  return Status::Fail("NATIVE_UNAVAILABLE", "the decoder of pictures and sounds is not built on Windows: " + path);
#else
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) return Status::Fail("NATIVE_UNAVAILABLE", std::string("the decoder does not load: ") + dlerror());
  const auto entry = reinterpret_cast<const DecoderTable* (*)()>(dlsym(handle, kDecoderEntry));
  const DecoderTable* table = entry ? entry() : nullptr;
  if (!table || table->version != kDecoderVersion) {
    dlclose(handle);  // it may be built anew
    return Status::Fail("NATIVE_UNAVAILABLE", path + " is not the decoder of this version");
  }
  table->set_log(LogLine);
  g_decoder = table;
  return Status::Ok();
#endif
}

const DecoderTable* Decoder() { return g_decoder; }

}  // namespace onpolicy
