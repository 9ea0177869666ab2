// Includes the headers of ggml's CPU backend, which the build takes from the release whose version OpenLibrary requires.
#pragma once
#include "base/engine.h"
#include "engine-assumptions/table/backend-tables.h"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#include <traits.h>  // ggml-cpu's own
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
