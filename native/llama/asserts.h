// A library of the engine -> its `assert`s do nothing, and what it calls fatal is an exception where one is waited for.
#pragma once

namespace onpolicy {

// The engine's libraries for Windows are built with asserts, those of other systems without: there a NaN in a computation would end
// the process. `place`: any address in the library, as its handle is. Elsewhere than on Windows nothing is done.
void IgnoreAsserts(const void* place);

// What the engine calls before it ends the process.
void OnFatal(const char* message);

// While one is alive, what is fatal to the engine on this thread is thrown as a std::runtime_error: the engine's own code passes it on
// or fails the call. What is fatal to a backend still ends the process: other threads of its computation would wait for this one.
class CatchFatal {
 public:
  CatchFatal();
  ~CatchFatal();
  CatchFatal(const CatchFatal&) = delete;
  CatchFatal& operator=(const CatchFatal&) = delete;
};

}  // namespace onpolicy
