// Steps whose question ends before they do -> each asks a question that still lives. Compiled with an address sanitizer.
#include <array>
#include <cstdio>

#include "base/compute-turns.h"

int main() {
  int asked = 0;
  {
    // Larger than what a std::function holds in place: the closure is memory that is freed with it.
    const std::array<int*, 8> counters{&asked};
    const onpolicy::ComputeTurns::Step turn([counters] { return ++*counters[0] < 0; });
    if (!turn.has_turn()) return 1;
  }
  std::printf("%d\n", asked);
}
