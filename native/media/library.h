// A path of the decoder library -> its table. Opened once a process, after the engine's libraries, whose functions it uses.
#pragma once
#include "media/decoder.h"

namespace onpolicy {

// Does nothing when it is open. Throws NATIVE_UNAVAILABLE.
void OpenDecoder(const std::string& path);

// Null until it is open.
const DecoderTable* Decoder();

}  // namespace onpolicy
