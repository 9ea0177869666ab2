// The tokenizer of a loaded model, for the grammar addon.
#pragma once
#include <memory>

#include "base/text-tokenizer.h"
#include "engine/model.h"

namespace onpolicy {

// Keeps only `owned` in memory. After another model is closed, every call fails.
class ModelTokenizer final : public TextTokenizer {
 public:
  explicit ModelTokenizer(std::weak_ptr<Model> model, std::shared_ptr<Model> owned = nullptr)
      : model_(std::move(model)), owned_(std::move(owned)) {}
  size_t Tokenize(std::string_view text, uint32_t* ids, size_t room) const noexcept override;

 private:
  std::weak_ptr<Model> model_;
  std::shared_ptr<Model> owned_;
};

}  // namespace onpolicy
