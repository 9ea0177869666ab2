// Drafters, indexes of answers and models that draft, for JavaScript, as handles.
#include <algorithm>

#include "addon/async-task.h"
#include "addon/handle.h"
#include "addon/register.h"
#include "addon/unwrap.h"
#include "engine/draft-context.h"

namespace onpolicy {
namespace {

constexpr napi_type_tag kDrafterTag = {0x3d0c6a8e51b94f27u, 0xb17e42d09ac8f365u};
constexpr napi_type_tag kAnswersTag = {0x92f4e07b6ad8431cu, 0x8e5b3c71f0d6a942u};
constexpr napi_type_tag kDraftModelTag = {0x5ae1d7f3908b426cu, 0xd26f0b8c4e7913a5u};
constexpr int32_t kLongestMinMatch = 32;

std::shared_ptr<AnswerIndex> UnwrapAnswers(Napi::Value value) {
  return UnwrapShared<AnswerIndex>(value, kAnswersTag, "answers", "an index of answers");
}

std::shared_ptr<DraftContext> UnwrapDraftModel(Napi::Value value) {
  return UnwrapShared<DraftContext>(value, kDraftModelTag, "model", "a draft model");
}

size_t ReadMinMatch(Napi::Value value) {
  return static_cast<size_t>(ReadInteger(value, "minMatch", 1, kLongestMinMatch));
}

// createDrafter({ minMatch, usesText, usesHead?, prediction?, answers?, model?, key? }, prompt: Int32Array) -> a handle
Napi::Value CreateDrafter(const Napi::CallbackInfo& info) {
  const Fields given(info[0]);
  DraftSources sources;
  sources.min_match = ReadMinMatch(given["minMatch"]);
  sources.own_text = given.Flag("usesText");
  sources.uses_head = given.Flag("usesHead");
  sources.prediction = given.IntegersOrNone("prediction");
  if (given.Has("answers")) sources.answers = UnwrapAnswers(given["answers"]);
  if (given.Has("model")) sources.model = UnwrapDraftModel(given["model"]);
  if (given.Has("key")) sources.key = given.Text("key");
  const auto prompt = ReadArray<int32_t>(info[1], "prompt");
  return WrapShared(info.Env(), kDrafterTag,
                    std::make_shared<Drafter>(std::move(sources), prompt.Data(), prompt.ElementLength()));
}

// draft(drafter, tokens: Int32Array, limit) -> Int32Array: accepts the tokens, then drafts what may follow.
Napi::Value Draft(const Napi::CallbackInfo& info) {
  const auto drafter = UnwrapDrafter(info[0]);
  const auto tokens = ReadArray<int32_t>(info[1], "tokens");
  for (size_t i = 0; i < tokens.ElementLength(); ++i) drafter->Accept(tokens[i]);
  std::vector<int32_t> draft;
  drafter->Draft(static_cast<size_t>(ReadInteger(info[2], "limit")), kNoState, &draft);
  return ToArray(info.Env(), draft);
}

// createAnswerIndex(minMatch, maxBytes) -> a handle
Napi::Value CreateAnswerIndex(const Napi::CallbackInfo& info) {
  const double max_bytes = ReadNumber(info[1], "maxBytes", 0, 1e12);
  return WrapShared(info.Env(), kAnswersTag,
                    std::make_shared<AnswerIndex>(ReadMinMatch(info[0]), static_cast<size_t>(max_bytes)));
}

// addAnswer(index, tokens: Int32Array, writer?: { drafter, from }) -> the bytes that the index takes. The drafter has recorded the states
// of a grammar in which the tokens were written; in its text they begin at `from`.
Napi::Value AddAnswer(const Napi::CallbackInfo& info) {
  const auto answers = UnwrapAnswers(info[0]);
  const auto tokens = ReadArray<int32_t>(info[1], "tokens");
  std::vector<uint64_t> states;
  if (!IsAbsent(info[2])) {
    const Fields writer(info[2]);
    const auto drafter = UnwrapDrafter(writer["drafter"]);
    const auto from = static_cast<size_t>(ReadInteger(writer["from"], "from"));
    for (size_t i = 0; i < tokens.ElementLength(); ++i) states.push_back(drafter->StateAt(from + i));
    if (std::all_of(states.begin(), states.end(), [](uint64_t state) { return state == kNoState; })) states.clear();
  }
  answers->Add(tokens.Data(), tokens.ElementLength(), states);
  return Napi::Number::New(info.Env(), static_cast<double>(answers->bytes()));
}

// createDraftModel(model, { sampledTokens, longest, ...options of createContext }) -> Promise of a handle: `model` drafts for sequences of
// a model with `sampledTokens` token ids, as long as they have at most `longest` tokens.
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

std::shared_ptr<Drafter> UnwrapDrafter(Napi::Value value) {
  if (IsAbsent(value)) return nullptr;
  return UnwrapShared<Drafter>(value, kDrafterTag, "drafters", "handles of drafters");
}

void RegisterDrafts(Napi::Env env, Napi::Object exports) {
  exports.Set("createDrafter", Napi::Function::New<CreateDrafter>(env, "createDrafter"));
  exports.Set("draft", Napi::Function::New<Draft>(env, "draft"));
  exports.Set("createAnswerIndex", Napi::Function::New<CreateAnswerIndex>(env, "createAnswerIndex"));
  exports.Set("addAnswer", Napi::Function::New<AddAnswer>(env, "addAnswer"));
  exports.Set("createDraftModel", Napi::Function::New<CreateDraftModel>(env, "createDraftModel"));
  exports.Set("closeDraftModel", Napi::Function::New<CloseDraftModel>(env, "closeDraftModel"));
}

}  // namespace onpolicy
