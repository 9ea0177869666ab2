// The entry of grammar.node.
#include "addon/register.h"

using onpolicy::RegisterGrammarAddon;

NODE_API_MODULE(grammar, RegisterGrammarAddon)
