// Handles of drafters and of models that draft.
#pragma once
#include <napi.h>

#include <memory>

#include "drafts/drafter.h"
#include "llama/draft-context.h"
#include "napi/handle.h"

namespace onpolicy {

// Null for null. Throws when `value` is no handle of a drafter.
std::shared_ptr<Drafter> UnwrapDrafter(Napi::Value value);

// Throws when `value` is no handle of a draft model.
std::shared_ptr<DraftContext> UnwrapDraftModel(Napi::Value value);

}  // namespace onpolicy
