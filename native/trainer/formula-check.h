// A trainer and the engine on the same file -> whether both compute the same log-probabilities.
#pragma once
#include "trainer/trainer.h"

namespace onpolicy::training {

// Compares a few tokens, once per file and process, on the CPU only. Records a difference as an assumption that does not hold. The engine maps
// the file, so that its weights take no second copy of memory, except for small models, whose weights are packed as for sampling.
void CheckFormulas(Trainer& trainer, const TrainerOptions& options);

}  // namespace onpolicy::training
