// The options of a context, as JavaScript gives them.
#pragma once
#include <napi.h>

#include "llama/context.h"
#include "napi/arguments.h"

namespace onpolicy {

// How a context is made, as createContext takes it.
ContextOptions ReadContextOptions(const Fields& given);

}  // namespace onpolicy
