// Bytes of a file -> pixels or samples, within limits that hold whatever its header says.
#pragma once
#include "media/decoder.h"

namespace onpolicy {

Status DecodeMedia(MediaKind kind, const uint8_t* bytes, size_t size, const DecodeLimits& limits, Media* media);
Status DecodeImage(const uint8_t* bytes, size_t size, const DecodeLimits& limits, Media* media);
Status DecodeAudio(const uint8_t* bytes, size_t size, const DecodeLimits& limits, Media* media);

}  // namespace onpolicy
