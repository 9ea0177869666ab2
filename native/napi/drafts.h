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

// createDraftModel(model, { sampledTokens, longest, ...those of createContext }) -> Promise of a handle: `model` drafts for
// sequences of a model with `sampledTokens` token ids, as long as they have at most `longest` tokens.
Napi::Value CreateDraftModel(const Napi::CallbackInfo& info);

// closeDraftModel(handle) -> Promise<void>: frees its context.
Napi::Value CloseDraftModel(const Napi::CallbackInfo& info);

}  // namespace onpolicy
