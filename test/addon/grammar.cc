// A matcher -> whether its mask was cut short, and less work for masks so that it is.
#include "../../test/addon/entry.h"
#include "mask/matcher.h"
#include "napi/handle.h"

namespace onpolicy {
namespace {

// divideWork(divisor): the work of masks from now on
void DivideWork(const Napi::CallbackInfo& info) { grammar::MaskWalk::DivideWork(ReadInteger<uint32_t>(info[0], "divisor", 1)); }

// isMaskCut(matcher) -> whether its last mask lacks tokens because it ran out of work
Napi::Value IsMaskCut(const Napi::CallbackInfo& info) {
  const auto matcher = UnwrapShared<TokenMatcher>(info[0], kMatcherTag, "matcher", "a matcher");
  return Napi::Boolean::New(info.Env(), std::static_pointer_cast<grammar::Matcher>(matcher)->IsMaskCut());
}

}  // namespace

void RegisterGrammarTests(Napi::Env env, Napi::Object exports) {
  exports.Set("divideWork", Napi::Function::New<DivideWork>(env, "divideWork"));
  exports.Set("isMaskCut", Napi::Function::New<IsMaskCut>(env, "isMaskCut"));
}

}  // namespace onpolicy
