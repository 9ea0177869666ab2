// A node of the engine's graph -> whether this library knows all of its sources and parameters. A node with others is left to the engine,
// whose result depends on them.
#pragma once
#include <ggml.h>

#include <string>

namespace onpolicy {

// Returns the first source or parameter of the node that this library does not know, such as "FLASH_ATTN_EXT has a source 5". Returns an
// empty string if it knows all, or does not know the operation.
std::string UnknownPart(const ggml_tensor* node);

// Returns false if the node has a source or a parameter that this library does not know. Such a node is recorded as an assumption that does
// not hold, and must be neither taken over nor marked.
bool IsKnown(const ggml_tensor* node);

// Returns the first operation of those whose nodes are marked that sets one of the parameters in which marks are stored. Returns an empty
// string if there is none. Call it when the libraries are open.
std::string UsedMark();

}  // namespace onpolicy
