// The tokenizer section of a GGUF file -> a Vocabulary. Reads metadata only, never weights.
#pragma once
#include <memory>
#include <string>

#include "mask/vocabulary.h"

namespace onpolicy::grammar {

// Throws MODEL_INVALID for a damaged file, MODEL_NOT_FOUND for one that cannot be opened.
std::shared_ptr<const Vocabulary> ReadGgufVocabulary(const std::string& path);

}  // namespace onpolicy::grammar
