// A graph that the CPU backend computes on several threads -> an assert on one of them ends the computation instead of the process.
#pragma once
#include <ggml-backend.h>
#include <ggml-cpu.h>

namespace onpolicy {

// Guards the graphs of CPU backends created from now on, for callers inside a guarded call.
void GuardComputations(ggml_backend_dev_t cpu);

// Sets the engine's barrier. Without it (on Windows), an assert in a computation with several threads ends the process.
void SetBarrier(void (*barrier)(ggml_threadpool_t));

// Call it on each thread of a computation, before each node that is not fused with another. Does not return if the computation is being
// ended.
void SeeNode(ggml_threadpool_t pool, int thread, int threads);

// Call it in a failed assert. Returns true if the thread is outside a computation. Inside one, the threads leave it, and the call does not
// return: the first thread goes to its guarded call, and the others sleep until the process ends. Returns false if there is no barrier:
// threads would wait forever for one that leaves.
bool LeaveComputation(const char* message);

// Returns true if threads of the pool have left a computation, so that it cannot be used again.
bool IsLost(ggml_threadpool_t pool);

}  // namespace onpolicy
