// Attention and recurrent layers of our own -> whether they agree with the engine's.
#pragma once
#include <ggml-backend.h>

#include <string>

namespace onpolicy::attention {

// Empty: they agree. Needs the hook to be in place.
std::string SelfTestProblem(ggml_backend_dev_t cpu);

}  // namespace onpolicy::attention
