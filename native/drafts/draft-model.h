// The tokens of many sequences -> tokens that a smaller model says come next. Hides what computes it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/token-matcher.h"
#include "sampler/sampler.h"

namespace onpolicy {

class Drafter;

// One sequence that wants drafts.
struct ModelDraft {
  std::shared_ptr<Drafter> drafter;  // has its tokens
  const Sampler* sampler = nullptr;  // as it samples the next token; a copy of it samples the drafts
  TokenMatcher* matcher = nullptr;  // null: the sequence is free; left as it was
  size_t limit = 0;                  // drafts at most
  std::vector<int32_t>* drafts = nullptr;  // filled
};

// What drafts cost.
struct DraftWork {
  double ms = 0;
  int32_t passes = 0;     // of the smaller model
  int32_t tokens = 0;     // that they computed, of all sequences
  int32_t sequences = 0;  // that have drafts
};

class DraftModel {
 public:
  virtual ~DraftModel() = default;

  // Drafts for all of them in the same passes. Sequences that are not computed yet are, some tokens a call, and have drafts
  // later. Where it fails there are no drafts. Not thread-safe.
  virtual DraftWork Draft(std::vector<ModelDraft>& sequences) = 0;
};

}  // namespace onpolicy
