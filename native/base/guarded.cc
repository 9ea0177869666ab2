#include "base/guarded.h"

#include <cstdio>
#include <exception>

#ifdef _WIN32
#include <csetjmp>
#include <windows.h>
#endif

namespace onpolicy {
namespace {

// A guarded call of a thread. The thread knows its innermost one.
struct Call {
  Call* outer;
  std::exception_ptr failure = nullptr;  // of a callback
#ifdef _WIN32
  jmp_buf place = {};
  char message[512] = {};
  bool has_thrown = false;
#endif
};

thread_local Call* t_innermost = nullptr;

class Entered {
 public:
  explicit Entered(Call* call) { t_innermost = call; }
  ~Entered() { t_innermost = t_innermost->outer; }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;
};

}  // namespace

void RefuseMissing(const char* name) {
  throw Failure("UNSUPPORTED", "the engine's libraries export no function " + std::string(name));
}

bool IsInEngine() { return t_innermost != nullptr; }

void KeepCallbackFailure() noexcept {
  if (t_innermost && !t_innermost->failure) t_innermost->failure = std::current_exception();
}

#ifdef _WIN32

extern "C" EXCEPTION_DISPOSITION onpolicy_on_engine_exception(EXCEPTION_RECORD* record, void*, CONTEXT*, void*) {
  constexpr DWORD kOfMsvc = 0xE06D7363;
  if ((record->ExceptionFlags & (EXCEPTION_UNWINDING | EXCEPTION_EXIT_UNWIND)) == 0 && record->ExceptionCode == kOfMsvc && t_innermost) {
    t_innermost->has_thrown = true;
    LeaveEngine("the engine threw an exception");
  }
  return ExceptionContinueSearch;
}

// Has no C++ handlers and destructors, so that the compiler adds no second exception handler.
static __attribute__((noinline)) void RunHandled(void (*work)(void*), void* data) {
  asm volatile("\t.seh_handler onpolicy_on_engine_exception, @except\n");
  work(data);
  asm volatile("nop");  // the system takes a frame that returns right behind its call for one that has ended, and asks no handler
}

void LeaveEngine(const char* message) {
  std::snprintf(t_innermost->message, sizeof t_innermost->message, "%s", message);
  longjmp(t_innermost->place, 1);
}

namespace guard {

void Run(void (*work)(void*), void* data) {
  Call call{t_innermost};
  const Entered entered(&call);
  if (setjmp(call.place) != 0) {
    t_innermost = &call;  // calls inside this one have ended, too
    if (call.has_thrown) throw EngineThrew(call.message);
    throw EngineFailed(call.message);
  }
  RunHandled(work, data);
  if (call.failure) std::rethrow_exception(call.failure);
}

}  // namespace guard

#else

void LeaveEngine(const char* message) { throw EngineFailed(message); }

namespace guard {

void Run(void (*work)(void*), void* data) {
  Call call{t_innermost};
  const Entered entered(&call);
  try {
    work(data);
  } catch (const Failure&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw EngineThrew(error.what());
  } catch (...) {
    throw EngineThrew("the engine threw something unknown");
  }
  if (call.failure) std::rethrow_exception(call.failure);
}

}  // namespace guard

#endif

}  // namespace onpolicy
