// A library of the engine -> its `assert`s are disabled, and its fatal errors end the guarded call instead of the process.
#pragma once

namespace onpolicy {

// Makes the library's failed asserts return. The engine's libraries for Windows are built with asserts, those of other systems without: on
// Windows a NaN in a computation would end the process. `place`: any address in the library, such as its handle. Does nothing on other
// systems.
void IgnoreAsserts(const void* place);

// From now on, a fatal error of the engine on a thread inside a guarded call ends that call with a Failure, also on the threads of a CPU
// backend. It still ends the process on threads that the engine starts for other work (loading, quantizing, GPUs), in a computation with
// several threads on Windows, and on threads of another user of the engine, whose callback is called.
void CatchFatal();

}  // namespace onpolicy
