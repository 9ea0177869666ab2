// Guarded calls of a library whose frames no exception of ours may pass: prints how many of 500 ended as they should.
#include <cstdio>

#include "base/guarded.h"

extern "C" __declspec(dllimport) void set_on_fatal(void (*function)(const char*));
extern "C" __declspec(dllimport) void fail_assert();
extern "C" __declspec(dllimport) void throw_exception();

using namespace onpolicy;

template <typename Caught = Failure, typename Call>
static bool FailsWith(const char* message, const Call& call) {
  try {
    Guard(call);
  } catch (const Caught& failure) {
    return failure.status().message == message && !IsInEngine();
  }
  return false;
}

int main() {
  set_on_fatal([](const char* message) { LeaveEngine(message); });
  const auto fails_inside = [] {
    Guard([] { fail_assert(); });
    return 0;
  };
  int good = 0;
  for (int i = 0; i < 100; ++i) {
    good += FailsWith("an assert", [] { fail_assert(); });
    good += FailsWith<EngineThrew>("the engine threw an exception", [] { throw_exception(); });
    good += FailsWith("of a callback", [] { InCallback([]() -> int { throw Failure("X", "of a callback"); }, 1); });
    good += FailsWith("an assert", [&] { InCallback(fails_inside, 1); });
    good += Guard([] { return 5; }) == 5;
  }
  std::printf("%d of 500\n", good);
}
