// A condition that must hold for every input of a fuzzer -> a crash if it does not, so that the fuzzer keeps the input.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <string>

inline void Require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what.c_str());
  std::abort();
}
