// The entry of answers.node: all that answers requests, with the engine's own kernels. `npm start` builds it first, as it takes a third of the
// compiler's time.
#include "addon/register.h"
#include "kernels/attention/kernels.h"
#include "kernels/matmul/kernels.h"

// These functions stand in place of those of kernels/best.cc, which would link all sets.
const onpolicy::matmul::Kernels* onpolicy::matmul::BestKernels() { return nullptr; }
const onpolicy::attention::Kernels* onpolicy::attention::BestKernels() { return nullptr; }

using onpolicy::RegisterAnswers;

NODE_API_MODULE(answers, RegisterAnswers)
