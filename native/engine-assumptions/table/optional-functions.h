// Functions of the engine that some releases lack, or export under another name; and values by which a moved field of a structure shows.
#pragma once
#include <functional>
#include <string>

#include "base/engine.h"

namespace onpolicy {

// The engine's limit of sequence numbers: those of sequences, and as many for guards of their cells.
constexpr size_t kSequences = 256;

// Looks up functions under all of their names. `symbol_of` returns null for a name that no library exports.
void FindOptionalFunctions(Library* library, const std::function<void*(const char* name)>& symbol_of);

// Compares the engine's default parameters with those of the releases that this library is built for: a field that has moved has another
// value. Returns the name of a field, or an empty string if all are as expected.
std::string MovedDefault();

}  // namespace onpolicy
