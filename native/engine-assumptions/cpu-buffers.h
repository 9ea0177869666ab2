// The engine's memory on the CPU -> memory of the system, which occupies nothing until it is used.
#pragma once
#include "engine-assumptions/library.h"

namespace onpolicy {

// Allocates the engine's CPU buffers from the system. The engine fills new caches with zeros, which memory of the system has already. For a
// default context, filling gigabytes would take longer than the first answer, and occupy all of that memory at once. Only on Linux.
void UseSystemMemory(ggml_backend_dev_t cpu);

}  // namespace onpolicy
