// The engine's memory on the CPU -> memory of the system, which takes none before it is used.
#pragma once
#include "llama/library.h"

namespace onpolicy {

// The engine fills new caches with zeros, which memory of the system has already. With a default context that are gigabytes: they would take
// longer than the first answer, and all of their memory at once. Does nothing but on Linux.
void UseSystemMemory(ggml_backend_dev_t cpu);

}  // namespace onpolicy
