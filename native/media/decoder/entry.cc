// The table that the addon finds in the decoder library.
#include "engine-assumptions/table/layout.h"
#include "media/decoder/functions.h"
#include "onpolicy-engine-version.h"

#ifdef _WIN32
#define ONPOLICY_EXPORT __declspec(dllexport)
#else
#define ONPOLICY_EXPORT __attribute__((visibility("default")))
#endif

extern "C" ONPOLICY_EXPORT const onpolicy::DecoderTable* onpolicy_decoder() {
  static const onpolicy::DecoderTable table{onpolicy::kDecoderVersion, onpolicy::kEngineLayout, ONPOLICY_ENGINE_VERSION,
                                            onpolicy::DecodeMedia,     onpolicy::OpenProjector, onpolicy::SetDecoderLog};
  return &table;
}
