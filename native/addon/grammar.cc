// The grammar addon: vocabularies, constraints and matchers for JavaScript, as handles.
#include <napi.h>

#include <algorithm>

#include "addon/async-task.h"
#include "addon/handle.h"
#include "addon/register.h"
#include "base/stay-loaded.h"
#include "grammar/mask/matcher.h"
#include "grammar/notations/compile.h"

namespace onpolicy {

using namespace grammar;

namespace {

constexpr napi_type_tag kVocabularyTag = {0xa3d86f17c05e924bu, 0x5b17ec4390fda826u};
constexpr napi_type_tag kConstraintTag = {0x2e9b47a0f1635dc8u, 0xd1708c3fe64a59b2u};
// Assumed memory of a constraint, reported to the garbage collector.
constexpr size_t kConstraintBytes = 128 << 10;

Napi::Value WrapVocabulary(Napi::Env env, std::shared_ptr<const Vocabulary> vocabulary) {
  return WrapShared(env, kVocabularyTag, std::move(vocabulary));
}

Napi::Value WrapMatcher(Napi::Env env, std::shared_ptr<TokenMatcher> matcher) {
  return WrapShared(env, kMatcherTag, std::move(matcher));
}

std::shared_ptr<const Vocabulary> UnwrapVocabulary(const Napi::Value& value) {
  return UnwrapShared<const Vocabulary>(value, kVocabularyTag, "vocabulary", "a handle of a vocabulary");
}

std::shared_ptr<Constraint> UnwrapConstraint(const Napi::Value& value) {
  return UnwrapShared<Constraint>(value, kConstraintTag, "constraint", "a handle of a constraint");
}

std::shared_ptr<Matcher> UnwrapMatcher(const Napi::Value& value) {
  return std::static_pointer_cast<Matcher>(UnwrapShared<TokenMatcher>(value, kMatcherTag, "matcher", "a handle of a matcher"));
}

std::vector<uint32_t> ReadIds(const Napi::Value& value, const char* field) {
  const auto array = ReadArray<int32_t>(value, field);
  return {array.Data(), array.Data() + array.ElementLength()};
}

Napi::Int32Array ToIds(Napi::Env env, std::span<const uint32_t> tokens) {
  return ToArray(env, std::vector<int32_t>(tokens.begin(), tokens.end()));
}

// Returns the tokenizer in a handle that the main addon made, or null.
std::shared_ptr<const TextTokenizer> ReadTokenizer(const Napi::Value& value) {
  if (value.IsNull() || value.IsUndefined()) return nullptr;
  return UnwrapShared<const TextTokenizer>(value, kTokenizerTag, "tokenizer", "a handle of a tokenizer");
}

// The tokens of a vocabulary, copied from JavaScript.
struct TokenTable {
  std::string bytes;              // bytes of all tokens, one after the other
  std::vector<uint32_t> offsets;  // (tokens + 1)
  std::vector<uint32_t> ends, specials;
  std::shared_ptr<const TextTokenizer> tokenizer;  // or null

  // Reads the arguments bytes, offsets, eosTokenIds, specialTokenIds, tokenizer.
  explicit TokenTable(const Napi::CallbackInfo& info)
      : offsets(ReadVector<uint32_t>(info[1], "offsets")),
        ends(ReadIds(info[2], "eosTokenIds")),
        specials(ReadIds(info[3], "specialTokenIds")),
        tokenizer(ReadTokenizer(info[4])) {
    const auto given = ReadArray<uint8_t>(info[0], "bytes");
    bytes.assign(reinterpret_cast<const char*>(given.Data()), given.ElementLength());
    const bool is_sorted = std::is_sorted(offsets.begin(), offsets.end());
    if (offsets.empty() || !is_sorted || offsets.back() > bytes.size()) RefuseField(info.Env(), "offsets", "ascending places in bytes");
  }

  std::shared_ptr<const Vocabulary> ToVocabulary() const {
    std::vector<std::string> tokens;
    for (size_t i = 0; i + 1 < offsets.size(); i++) tokens.push_back(bytes.substr(offsets[i], offsets[i + 1] - offsets[i]));
    return std::make_shared<const Vocabulary>(std::move(tokens), ends, specials, tokenizer);
  }
};

// createVocabulary(bytes, offsets, eosTokenIds, specialTokenIds, tokenizer?) -> a handle
Napi::Value CreateVocabulary(const Napi::CallbackInfo& info) { return WrapVocabulary(info.Env(), TokenTable(info).ToVocabulary()); }

// loadVocabulary(bytes, offsets, eosTokenIds, specialTokenIds, tokenizer?) -> Promise of a handle
Napi::Value LoadVocabulary(const Napi::CallbackInfo& info) {
  return AsyncTask::Run(info.Env(), [table = TokenTable(info)] { return table.ToVocabulary(); }, WrapVocabulary);
}

// vocabularyInfo(handle) -> { size, memoryBytes, eosTokenIds }
Napi::Value VocabularyInfo(const Napi::CallbackInfo& info) {
  const auto vocabulary = UnwrapVocabulary(info[0]);
  return ObjectOf(info.Env(), "size", vocabulary->size(), "memoryBytes", vocabulary->memory_bytes(), "eosTokenIds",
                  ToIds(info.Env(), vocabulary->eos_tokens()));
}

Napi::Value TokenizeBytes(const Napi::CallbackInfo& info) {
  const auto vocabulary = UnwrapVocabulary(info[0]);
  const auto bytes = ReadArray<uint8_t>(info[1], "bytes");
  return ToIds(info.Env(),
               vocabulary->Tokenize({reinterpret_cast<const char*>(bytes.Data()), bytes.ElementLength()}));
}

Napi::Value TokenBytes(const Napi::CallbackInfo& info) {
  const auto vocabulary = UnwrapVocabulary(info[0]);
  const uint32_t token = ReadInteger<uint32_t>(info[1], "number");
  if (token >= vocabulary->size()) return info.Env().Undefined();
  const std::string_view bytes = vocabulary->Bytes(token);
  return ToArray(info.Env(), std::vector<uint8_t>(bytes.begin(), bytes.end()));
}

// compileConstraint(spec, vocabulary, cancelled?: Int32Array(1), work?) -> Promise of { constraint, warnings, relaxed }. `cancelled[0]` set
// to 1 ends it with ABORTED. Resolves with null if it takes more than `work`.
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
  const auto cancelled = IsAbsent(info[2]) ? Napi::Int32Array::New(info.Env(), 1) : ReadArray<int32_t>(info[2], "cancelled");
  if (cancelled.ElementLength() == 0) RefuseField(info.Env(), "cancelled", "one number");
  const uint64_t work = IsAbsent(info[3]) ? Budget::kUnbounded : static_cast<uint64_t>(ReadNumber(info[3], "work", 0, 1e15));
  // Read from the compiling thread; the array is kept alive as the task's owner.
  const volatile int32_t* flag = cancelled.Data();
  return AsyncTask::Run(
      info.Env(), cancelled,
      [spec = std::move(spec), vocabulary = UnwrapVocabulary(info[1]), flag, work]() -> std::shared_ptr<Constraint> {
        try {
          return CompileConstraint(spec, vocabulary, flag, work);
        } catch (const WorkSpent&) {
          return nullptr;
        }
      },
      [](Napi::Env env, const std::shared_ptr<Constraint>& constraint) -> Napi::Value {
        if (!constraint) return env.Null();
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
      info.Env(), [constraint = UnwrapConstraint(info[0])] { return constraint->WarmUp(); }, ToValue<size_t>);
}

Napi::Value CreateMatcher(const Napi::CallbackInfo& info) {
  return WrapMatcher(info.Env(), std::make_shared<Matcher>(UnwrapConstraint(info[0])));
}

Napi::Value FillMask(const Napi::CallbackInfo& info) {
  const auto matcher = UnwrapMatcher(info[0]);
  auto mask = ReadArray<int32_t>(info[1], "mask");
  if (mask.ElementLength() < matcher->mask_words()) return info.Env().Undefined();
  return Napi::Boolean::New(info.Env(), matcher->FillMask(reinterpret_cast<uint32_t*>(mask.Data())));
}

// cutMasks() -> number of masks of this process that lack tokens
Napi::Value CutMasks(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(Constraint::CutMasks()));
}

Napi::Value Accept(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(),
                            UnwrapMatcher(info[0])->Accept(ReadInteger<uint32_t>(info[1], "number")));
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
                            UnwrapMatcher(info[0])->Rollback(ReadInteger<uint32_t>(info[1], "number")));
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
