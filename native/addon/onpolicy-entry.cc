// The entry of onpolicy.node.
#include "addon/register.h"

using onpolicy::RegisterEngineAddon;

NODE_API_MODULE(onpolicy, RegisterEngineAddon)
