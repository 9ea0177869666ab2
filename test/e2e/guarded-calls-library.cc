// A library in the place of the engine's: it calls back, and throws as one that Microsoft's compiler has built.
#include <windows.h>

static void (*on_fatal)(const char*);

extern "C" __declspec(dllexport) void set_on_fatal(void (*function)(const char*)) { on_fatal = function; }
extern "C" __declspec(dllexport) void fail_assert() { on_fatal("an assert"); }
extern "C" __declspec(dllexport) void throw_exception() { RaiseException(0xE06D7363, 0, 0, nullptr); }
