// A matcher -> whether its mask was cut short, and less work for masks so that it is. What constraints and tokenizers do.
#include "./entry.h"
#include "addon/handle.h"
#include "grammar/mask/matcher.h"

namespace onpolicy {
namespace {

// divideWork(divisor): the work of masks from now on
void DivideWork(const Napi::CallbackInfo& info) { grammar::MaskWalk::DivideWork(ReadInteger<uint32_t>(info[0], "divisor", 1)); }

// isMaskCut(matcher) -> whether its last mask lacks tokens because it ran out of work
Napi::Value IsMaskCut(const Napi::CallbackInfo& info) {
  const auto matcher = UnwrapShared<TokenMatcher>(info[0], kMatcherTag, "matcher", "a matcher");
  return Napi::Boolean::New(info.Env(), std::static_pointer_cast<grammar::Matcher>(matcher)->IsMaskCut());
}

// workOf(matcher) -> work of its constraint so far, its compilation included
Napi::Value WorkOf(const Napi::CallbackInfo& info) {
  const auto matcher = UnwrapShared<TokenMatcher>(info[0], kMatcherTag, "matcher", "a matcher");
  const uint64_t work = std::static_pointer_cast<grammar::Matcher>(matcher)->constraint().work();
  return Napi::Number::New(info.Env(), static_cast<double>(work));
}

// splitText(tokenizer, text) -> Int32Array: what the engine's tokenizer makes of a text that begins there, or null
Napi::Value SplitText(const Napi::CallbackInfo& info) {
  const auto tokenizer = UnwrapShared<const TextTokenizer>(info[0], kTokenizerTag, "tokenizer", "a tokenizer");
  const std::string text = ReadText(info[1], "text");
  std::vector<uint32_t> ids(text.size() + 16);
  const size_t count = tokenizer->Tokenize(text, ids.data(), ids.size());
  if (count > ids.size()) return info.Env().Null();
  return ToArray(info.Env(), std::vector<int32_t>(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count)));
}

}  // namespace

void RegisterGrammarTests(Napi::Env env, Napi::Object exports) {
  exports.Set("divideWork", Napi::Function::New<DivideWork>(env, "divideWork"));
  exports.Set("workOf", Napi::Function::New<WorkOf>(env, "workOf"));
  exports.Set("splitText", Napi::Function::New<SplitText>(env, "splitText"));
  exports.Set("isMaskCut", Napi::Function::New<IsMaskCut>(env, "isMaskCut"));
}

}  // namespace onpolicy
