// Rows of logits of a model -> rows with the ids that samplers know besides, which are impossible.
#pragma once
#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace onpolicy {

class PaddedRows {
 public:
  // Puts copies of `wanted` numbers in place of rows of `own`. They last until the next call.
  void Pad(size_t own, size_t wanted, std::vector<const float*>* rows) {
    padded_.resize(std::max(padded_.size(), rows->size()));
    for (size_t i = 0; i < rows->size(); ++i) {
      padded_[i].assign(wanted, -std::numeric_limits<float>::infinity());
      std::copy_n((*rows)[i], own, padded_[i].begin());
      (*rows)[i] = padded_[i].data();
    }
  }

 private:
  std::vector<std::vector<float>> padded_;
};

}  // namespace onpolicy
