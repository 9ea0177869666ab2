// This addon's attention and recurrent layers -> whether they agree with the engine's.
#pragma once
#include <ggml-backend.h>

#include <string>

namespace onpolicy::attention {

// Returns an empty string if they agree, else the difference. The hook must be installed.
std::string SelfTestProblem(ggml_backend_dev_t cpu);

}  // namespace onpolicy::attention
