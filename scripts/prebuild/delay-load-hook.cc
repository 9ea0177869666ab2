// Node's functions, imported from "node.exe", come from the process that loads the addon: Electron and renamed executables too.
#include <windows.h>
// The order matters.
#include <delayimp.h>

static FARPROC WINAPI HostProcess(unsigned event, DelayLoadInfo* info) {
  if (event != dliNotePreLoadLibrary || lstrcmpiA(info->szDll, "node.exe") != 0) return nullptr;
  return reinterpret_cast<FARPROC>(GetModuleHandleW(nullptr));
}

extern "C" {
PfnDliHook __pfnDliNotifyHook2 = HostProcess;
}
