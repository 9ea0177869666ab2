// The entry of grammar.node.
#include "napi/register.h"

using onpolicy::RegisterGrammarAddon;

NODE_API_MODULE(grammar, RegisterGrammarAddon)
