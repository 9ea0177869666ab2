// A projector file -> a Projector.
#pragma once
#include "media/decoder.h"

namespace onpolicy {

Status OpenProjector(const ProjectorOptions& options, const llama_model* model, std::unique_ptr<Projector>* projector);
void SetDecoderLog(void (*log)(int level, const char* text));

}  // namespace onpolicy
