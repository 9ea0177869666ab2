// The grammar addon: vocabularies, constraints and matchers for JavaScript, as handles.
#include <napi.h>

#include <algorithm>

#include "base/stay-loaded.h"
#include "mask/gguf-vocabulary.h"
#include "mask/matcher.h"
#include "napi/async-task.h"
#include "napi/handle.h"
#include "napi/register.h"
#include "notations/compile.h"

namespace onpolicy {

using namespace grammar;

namespace {

constexpr napi_type_tag kVocabularyTag = {0xa3d86f17c05e924bu, 0x5b17ec4390fda826u};
constexpr napi_type_tag kConstraintTag = {0x2e9b47a0f1635dc8u, 0xd1708c3fe64a59b2u};
// Of a constraint's memory.
constexpr size_t kConstraintBytes = 128 << 10;

Napi::Value WrapVocabulary(Napi::Env env, std::shared_ptr<const Vocabulary> vocabulary) {
  return WrapShared(env, kVocabularyTag, std::move(vocabulary));
}

Napi::Value WrapMatcher(Napi::Env env, std::shared_ptr<TokenMatcher> matcher) {
  return WrapShared(env, kMatcherTag, std::move(matcher));
}

std::shared_ptr<Matcher> UnwrapMatcher(const Napi::Value& value) {
  return std::static_pointer_cast<Matcher>(HeldBy<TokenMatcher>(value));
}

std::vector<uint32_t> Ids(const Napi::Value& value) {
  const auto array = value.As<Napi::Int32Array>();
  return {array.Data(), array.Data() + array.ElementLength()};
}

Napi::Int32Array ToIds(Napi::Env env, std::span<const uint32_t> tokens) {
  return ToArray(env, std::vector<int32_t>(tokens.begin(), tokens.end()));
}

// The tokens of a vocabulary, copied from JavaScript.
struct TokenTable {
  std::string bytes;              // of all tokens, one after the other
  std::vector<uint32_t> offsets;  // (tokens + 1)
  std::vector<uint32_t> ends, specials;
  bool merges_by_id;

  // From bytes, offsets, eosTokenIds, specialTokenIds, mergesById.
  explicit TokenTable(const Napi::CallbackInfo& info)
      : offsets(ToVector(info[1].As<Napi::Uint32Array>())),
        ends(Ids(info[2])),
        specials(Ids(info[3])),
        merges_by_id(info[4].ToBoolean()) {
    const auto given = info[0].As<Napi::Uint8Array>();
    bytes.assign(reinterpret_cast<const char*>(given.Data()), given.ElementLength());
  }

  std::shared_ptr<const Vocabulary> ToVocabulary() const {
    std::vector<std::string> tokens;
    for (size_t i = 0; i + 1 < offsets.size(); i++) tokens.push_back(bytes.substr(offsets[i], offsets[i + 1] - offsets[i]));
    return std::make_shared<const Vocabulary>(std::move(tokens), ends, specials, merges_by_id);
  }
};

// createVocabulary(bytes, offsets, eosTokenIds, specialTokenIds, mergesById) -> a handle
Napi::Value CreateVocabulary(const Napi::CallbackInfo& info) { return WrapVocabulary(info.Env(), TokenTable(info).ToVocabulary()); }

// loadVocabulary(bytes, offsets, eosTokenIds, specialTokenIds, mergesById) -> Promise of a handle
Napi::Value LoadVocabulary(const Napi::CallbackInfo& info) {
  return AsyncTask::Run(info.Env(), [table = TokenTable(info)] { return table.ToVocabulary(); }, WrapVocabulary);
}

// readVocabulary(path) -> Promise of a handle
Napi::Value ReadVocabulary(const Napi::CallbackInfo& info) {
  const std::string path = info[0].As<Napi::String>();
  return AsyncTask::Run(info.Env(), [path] { return ReadGgufVocabulary(path); }, WrapVocabulary);
}

// vocabularyInfo(handle) -> { size, memoryBytes, eosTokenIds }
Napi::Value VocabularyInfo(const Napi::CallbackInfo& info) {
  const auto vocabulary = HeldBy<const Vocabulary>(info[0]);
  return ObjectOf(info.Env(), "size", vocabulary->size(), "memoryBytes", vocabulary->memory_bytes(), "eosTokenIds",
                  ToIds(info.Env(), vocabulary->eos_tokens()));
}

Napi::Value TokenizeBytes(const Napi::CallbackInfo& info) {
  const auto vocabulary = HeldBy<const Vocabulary>(info[0]);
  const auto bytes = info[1].As<Napi::Uint8Array>();
  return ToIds(info.Env(),
               vocabulary->Tokenize({reinterpret_cast<const char*>(bytes.Data()), bytes.ElementLength()}));
}

Napi::Value TokenBytes(const Napi::CallbackInfo& info) {
  const auto vocabulary = HeldBy<const Vocabulary>(info[0]);
  const uint32_t token = info[1].As<Napi::Number>().Uint32Value();
  if (token >= vocabulary->size()) return info.Env().Undefined();
  const std::string_view bytes = vocabulary->Bytes(token);
  return ToArray(info.Env(), std::vector<uint8_t>(bytes.begin(), bytes.end()));
}

// compileConstraint(spec, vocabulary) -> Promise of { constraint, warnings, relaxed }
Napi::Value Compile(const Napi::CallbackInfo& info) {
  const Fields given(info[0], "spec");
  Spec spec;
  spec.kind = static_cast<SpecKind>(given.Integer("kind", 0, static_cast<int32_t>(SpecKind::kStructuralTag)));
  spec.text = given.Text("text");
  spec.choices = given.Texts("choices");
  spec.schema.any_whitespace = given.Flag("anyWhitespace");
  spec.schema.disable_additional_properties = given.Flag("disableAdditionalProperties");
  spec.schema.refuse_unknown = given.Flag("refuseUnknown");
  spec.schema.any_order = given.Flag("anyOrder");
  const std::vector<std::string> uris = given.Texts("schemaUris"), schemas = given.Texts("schemas");
  for (size_t i = 0; i < std::min(uris.size(), schemas.size()); i++) spec.schema.schemas.emplace(uris[i], schemas[i]);
  if (given["whitespacePattern"].IsString()) spec.schema.whitespace_pattern = given.Text("whitespacePattern");
  return AsyncTask::Run(
      info.Env(), [spec = std::move(spec), vocabulary = HeldBy<const Vocabulary>(info[1])] { return CompileConstraint(spec, vocabulary); },
      [](Napi::Env env, const std::shared_ptr<Constraint>& constraint) {
        Napi::Array all = Napi::Array::New(env), relaxed = Napi::Array::New(env);
        for (const Warning& warning : constraint->warnings()) {
          all.Set(all.Length(), warning.text);
          if (warning.accepts_more) relaxed.Set(relaxed.Length(), warning.text);
        }
        return ObjectOf(env, "warnings", all, "relaxed", relaxed, "constraint",
                        WrapShared(env, kConstraintTag, constraint, kConstraintBytes));
      });
}

// warmUp(constraint) -> Promise of the number of masks that were computed
Napi::Value WarmUp(const Napi::CallbackInfo& info) {
  return AsyncTask::Run(
      info.Env(), [constraint = HeldBy<Constraint>(info[0])] { return constraint->WarmUp(); }, ToValue<size_t>);
}

Napi::Value CreateMatcher(const Napi::CallbackInfo& info) {
  return WrapMatcher(info.Env(), std::make_shared<Matcher>(HeldBy<Constraint>(info[0])));
}

Napi::Value FillMask(const Napi::CallbackInfo& info) {
  const auto matcher = UnwrapMatcher(info[0]);
  auto mask = info[1].As<Napi::Int32Array>();
  if (mask.ElementLength() < matcher->mask_words()) return info.Env().Undefined();
  return Napi::Boolean::New(info.Env(), matcher->FillMask(reinterpret_cast<uint32_t*>(mask.Data())));
}

// cutMasks() -> how many masks of this process lack tokens
Napi::Value CutMasks(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(Constraint::CutMasks()));
}

Napi::Value Accept(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(),
                            UnwrapMatcher(info[0])->Accept(info[1].As<Napi::Number>().Uint32Value()));
}

template <auto Question>
Napi::Value Ask(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), (UnwrapMatcher(info[0]).get()->*Question)());
}

Napi::Value ForcedTokens(const Napi::CallbackInfo& info) {
  return ToIds(info.Env(), UnwrapMatcher(info[0])->ForcedTokens());
}

Napi::Value Rollback(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(),
                            UnwrapMatcher(info[0])->Rollback(info[1].As<Napi::Number>().Uint32Value()));
}

Napi::Value Clone(const Napi::CallbackInfo& info) {
  return WrapMatcher(info.Env(), std::shared_ptr<Matcher>(UnwrapMatcher(info[0])->Clone()));
}

}  // namespace

Napi::Object RegisterGrammarAddon(Napi::Env env, Napi::Object exports) {
  // A step of the other addon may still use a matcher when the JavaScript thread that made it ends.
  if (!StayLoaded()) throw Napi::Error::New(env, "the grammar engine could not be kept in memory");
  const auto add = [&](const char* name, Napi::Value (*function)(const Napi::CallbackInfo&)) {
    exports.Set(name, Napi::Function::New(env, function, name));
  };
  add("createVocabulary", CreateVocabulary);
  add("loadVocabulary", LoadVocabulary);
  add("readVocabulary", ReadVocabulary);
  add("vocabularyInfo", VocabularyInfo);
  add("tokenizeBytes", TokenizeBytes);
  add("tokenBytes", TokenBytes);
  add("compileConstraint", Compile);
  add("warmUp", WarmUp);
  add("createMatcher", CreateMatcher);
  add("fillMask", FillMask);
  add("cutMasks", CutMasks);
  add("accept", Accept);
  add("isComplete", Ask<&Matcher::IsComplete>);
  add("isFinal", Ask<&Matcher::IsFinal>);
  add("forcedTokens", ForcedTokens);
  add("rollback", Rollback);
  add("cloneMatcher", Clone);
  return exports;
}

}  // namespace onpolicy
