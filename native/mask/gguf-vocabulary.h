// The tokenizer section of a GGUF file -> a Vocabulary. Reads metadata only, never weights.
#pragma once
#include <memory>
#include <string>

#include "base/status.h"
#include "mask/vocabulary.h"

namespace onpolicy::grammar {

// Never throws. MODEL_INVALID for a damaged file, MODEL_NOT_FOUND for one that cannot be opened.
Status ReadGgufVocabulary(const std::string& path, std::shared_ptr<const Vocabulary>* vocabulary);

}  // namespace onpolicy::grammar
