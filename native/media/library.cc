#include "media/library.h"

#include <atomic>
#include <mutex>

#include "llama/library.h"
#include "llama/shared-library.h"

namespace onpolicy {
namespace {

std::mutex g_decoder_mutex;
std::atomic<const DecoderTable*> g_decoder{nullptr};

}  // namespace

void OpenDecoder(const std::string& path) {
  std::lock_guard<std::mutex> lock(g_decoder_mutex);
  if (g_decoder) return;
  void* handle = OpenSharedLibrary(path, Names::kOwn);
  if (!handle) throw Failure("NATIVE_UNAVAILABLE", "the decoder does not load: " + LibraryError());
  const auto entry = reinterpret_cast<const DecoderTable* (*)()>(LibrarySymbol(handle, kDecoderEntry));
  const DecoderTable* table = entry ? entry() : nullptr;
  if (!table || table->version != kDecoderVersion) {
    CloseSharedLibrary(handle);  // it may be built anew
    throw Failure("NATIVE_UNAVAILABLE", path + " is not the decoder of this version");
  }
  table->set_log(LogLine);
  g_decoder = table;
}

const DecoderTable* Decoder() { return g_decoder; }

}  // namespace onpolicy
