#include "engine/model-tokenizer.h"

#include <algorithm>
#include <string>
#include <vector>

namespace onpolicy {

size_t ModelTokenizer::Tokenize(std::string_view text, uint32_t* ids, size_t room) const noexcept {
  try {
    const std::shared_ptr<Model> model = model_.lock();
    if (!model) return kFailed;
    const std::vector<int32_t> tokens = model->Tokenize(std::string(text), false, false);
    std::copy_n(tokens.begin(), std::min(room, tokens.size()), ids);
    return tokens.size();
  } catch (...) {  // a text that the vocabulary cannot encode, or out of memory
    return kFailed;
  }
}

}  // namespace onpolicy
