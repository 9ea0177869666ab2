// The entry of onpolicy.node.
#include "napi/register.h"

using onpolicy::RegisterEngineAddon;

NODE_API_MODULE(onpolicy, RegisterEngineAddon)
