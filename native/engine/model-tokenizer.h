// The tokenizer of a loaded model, for the grammar addon.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/text-tokenizer.h"
#include "engine/model.h"

namespace onpolicy {

// Keeps only `owned` in memory. After another model is closed, every call fails.
class ModelTokenizer final : public TextTokenizer {
 public:
  explicit ModelTokenizer(std::weak_ptr<Model> model, std::shared_ptr<Model> owned = nullptr)
      : model_(std::move(model)), owned_(std::move(owned)) {}

  size_t Tokenize(std::string_view text, uint32_t* ids, size_t room) const noexcept override {
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

 private:
  std::weak_ptr<Model> model_;
  std::shared_ptr<Model> owned_;
};

}  // namespace onpolicy
