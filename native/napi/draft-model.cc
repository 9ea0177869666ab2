// Draft models for JavaScript, as handles.
#include "napi/async-task.h"
#include "napi/context-options.h"
#include "napi/drafts.h"
#include "napi/model.h"
#include "napi/register.h"

namespace onpolicy {
namespace {

constexpr napi_type_tag kDraftModelTag = {0x5ae1d7f3908b426cu, 0xd26f0b8c4e7913a5u};

// createDraftModel(model, { sampledTokens, longest, ...those of createContext }) -> Promise of a handle: `model` drafts for
// sequences of a model with `sampledTokens` token ids, as long as they have at most `longest` tokens.
Napi::Value CreateDraftModel(const Napi::CallbackInfo& info) {
  const auto owner = info[0].As<Napi::Object>();
  const std::shared_ptr<Model> model = RequireModel(owner);
  const Fields given(info[1]);
  ContextOptions options = ReadContextOptions(given);
  options.sampled_vocab = given.Integer("sampledTokens", 1);
  const auto longest = given.Integer<uint32_t>("longest", 1);
  return AsyncTask::Run(
      info.Env(), owner,
      [model, options, longest] { return std::make_shared<DraftContext>(Context::Create(model, options), options, longest); },
      [](Napi::Env env, const std::shared_ptr<DraftContext>& created) { return WrapShared(env, kDraftModelTag, created); });
}

// closeDraftModel(handle) -> Promise<void>: frees its context.
Napi::Value CloseDraftModel(const Napi::CallbackInfo& info) {
  return AsyncTask::Run(info.Env(), [model = UnwrapDraftModel(info[0])] { model->Close(); });
}

}  // namespace

std::shared_ptr<DraftContext> UnwrapDraftModel(Napi::Value value) {
  return UnwrapShared<DraftContext>(value, kDraftModelTag, "model", "a draft model");
}

void RegisterDraftModel(Napi::Env env, Napi::Object exports) {
  exports.Set("createDraftModel", Napi::Function::New<CreateDraftModel>(env, "createDraftModel"));
  exports.Set("closeDraftModel", Napi::Function::New<CloseDraftModel>(env, "closeDraftModel"));
}

}  // namespace onpolicy
