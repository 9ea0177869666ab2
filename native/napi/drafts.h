// Handles of drafters, as JavaScript holds them.
#pragma once
#include <napi.h>

#include <memory>

#include "drafts/drafter.h"

namespace onpolicy {

// Null for null. Throws when `value` is no handle of a drafter.
std::shared_ptr<Drafter> UnwrapDrafter(Napi::Value value);

}  // namespace onpolicy
