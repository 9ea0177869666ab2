// Use of the cores -> the threads that a budget gives.
#include "base/thread-budget.h"

#include "./entry.h"
#include "addon/arguments.h"

namespace onpolicy {
namespace {

// threadBudget(cores, looks: { seconds, idle, own }[], users: number[]) -> (looks, users) threads of computations that begin after each look,
// run at once, and then end. Of each look: how long it lasted, and how many cores were idle and computed for this process. The same of the
// time in which they run, with `during`.
Napi::Value RunThreadBudget(const Napi::CallbackInfo& info) {
  CoreTimes times;
  ThreadBudget budget(info[0].ToNumber().Int32Value(), {[&] { return times.now; }, [&] { return times; }});
  const auto looks = info[1].As<Napi::Array>(), users = info[2].As<Napi::Array>();
  Napi::Array all = Napi::Array::New(info.Env(), looks.Length());
  const auto pass = [&times](const Fields& look) {
    const double seconds = look.Number("seconds");
    times.now += seconds;
    times.idle += seconds * look.Number("idle");
    times.own += seconds * look.Number("own");
  };
  for (uint32_t i = 0; i < looks.Length(); ++i) {
    const Fields look(looks.Get(i), "looks");
    pass(look);
    std::vector<std::unique_ptr<ThreadBudget::User>> computing;
    std::vector<std::unique_ptr<ThreadBudget::Share>> shares;
    Napi::Array threads = Napi::Array::New(info.Env(), users.Length());
    for (uint32_t user = 0; user < users.Length(); ++user) {
      computing.push_back(std::make_unique<ThreadBudget::User>(users.Get(user).ToNumber().Int32Value(), budget));
      shares.push_back(std::make_unique<ThreadBudget::Share>(*computing.back()));
      threads.Set(user, shares.back()->threads());
    }
    if (!IsAbsent(look["during"])) pass(Fields(look["during"], "looks.during"));
    all.Set(i, threads);
  }
  return all;
}

// coreTimes(statistics?) -> { now, idle, own } in seconds, or null.
Napi::Value ReadTimes(const Napi::CallbackInfo& info) {
  const std::optional<CoreTimes> times = IsAbsent(info[0]) ? ReadCoreTimes() : ReadCoreTimes(ReadText(info[0], "statistics"));
  if (!times) return info.Env().Null();
  Napi::Object object = Napi::Object::New(info.Env());
  object.Set("now", times->now);
  object.Set("idle", times->idle);
  object.Set("own", times->own);
  return object;
}

}  // namespace

void RegisterThreadBudgetTests(Napi::Env env, Napi::Object exports) {
  exports.Set("threadBudget", Napi::Function::New(env, RunThreadBudget));
  exports.Set("coreTimes", Napi::Function::New(env, ReadTimes));
}

}  // namespace onpolicy
