// Grammar mask, allowed ids, bad words and min_tokens -> one bit per token.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "sampler/kernels.h"
#include "sampler/sampler-plan.h"

namespace onpolicy {

class TokenMask {
 public:
  // Keeps a pointer to `plan`.
  explicit TokenMask(const SamplerPlan& plan);

  // A generated token: bad words and min_tokens look at generated tokens only.
  void Accept(int32_t token);

  int32_t generated() const { return generated_; }

  // Whether anything is masked at this step; `grammar` may be null.
  bool Masks(const uint32_t* grammar) const;

  // Writes the allowed tokens as bits: two words per block of the row, zero past the vocabulary.
  void Fill(const uint32_t* grammar, std::vector<uint32_t>& mask) const;

  // Writes a mask that allows every token.
  void FillAll(std::vector<uint32_t>& mask) const;

 private:
  // Calls `ban` with each id that this step's context forbids: completions of bad words, and stop ids until
  // min_tokens.
  template <class Ban>
  void ForEachBanned(Ban ban) const {
    for (const std::vector<int32_t>* word : long_words_) {
      const size_t prefix = word->size() - 1;
      if (recent_.size() >= prefix && std::equal(word->begin(), word->end() - 1, recent_.end() - prefix))
        ban(word->back());
    }
    if (generated_ < plan_->min_tokens)
      for (const int32_t id : plan_->stop_ids) ban(id);
  }

  const SamplerPlan* plan_;
  std::vector<uint32_t> always_;                         // (words) allowed at every step; empty: all
  std::vector<const std::vector<int32_t>*> long_words_;  // bad words of two tokens and more
  size_t longest_prefix_ = 0;
  std::vector<int32_t>
      recent_;  // last generated tokens, at least longest_prefix_ of them once there are as many
  int32_t generated_ = 0;
};

}  // namespace onpolicy
