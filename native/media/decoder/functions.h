// Functions in the table of the decoder library.
#pragma once
#include "media/decoder.h"

namespace onpolicy {

// Bytes of a file -> pixels or samples, within limits that apply regardless of its header.
Status DecodeMedia(MediaKind kind, const uint8_t* bytes, size_t size, const DecodeLimits& limits, Media* media);
Status DecodeImage(const uint8_t* bytes, size_t size, const DecodeLimits& limits, Media* media);
Status DecodeAudio(const uint8_t* bytes, size_t size, const DecodeLimits& limits, Media* media);

// A projector file -> a Projector.
Status OpenProjector(const ProjectorOptions& options, const llama_model* model, std::unique_ptr<Projector>* projector);
void SetDecoderLog(void (*log)(int level, const char* text));

}  // namespace onpolicy
