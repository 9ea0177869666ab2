// The tokens of many sequences -> tokens that a smaller model says come next. Hides what computes it.
#pragma once
#include <algorithm>
#include <chrono>
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
  size_t row = 0;  // the sample of the step behind which they stand
};

// A sequence on its way through one call of a model that drafts: a copy of its sampler, and its matcher, which gives back what it accepts.
struct DraftJob {
  explicit DraftJob(ModelDraft& wanted)
      : draft(&wanted), sampler(std::make_shared<Sampler>(*wanted.sampler)), matcher(std::shared_ptr<void>(), wanted.matcher) {}

  ModelDraft* draft;
  std::shared_ptr<Sampler> sampler;
  std::shared_ptr<TokenMatcher> matcher;  // does not own

  // Takes what a pass sampled for it. False: no token.
  bool Take(const RowResult& row) {
    if (row.status != RowStatus::kSampled || row.token < 0) return false;
    accepted_ += 1 + row.forced.size();
    draft->drafts->push_back(row.token);
    draft->drafts->insert(draft->drafts->end(), row.forced.begin(), row.forced.end());
    return true;
  }
  // Leaves the matcher as it was. Returns whether there are drafts.
  bool End() {
    if (matcher) matcher->Rollback(accepted_);
    if (draft->drafts->size() > draft->limit) draft->drafts->resize(draft->limit);
    return !draft->drafts->empty();
  }

 private:
  size_t accepted_ = 0;  // tokens that the matcher has to give back
};

// What drafts cost.
struct DraftWork {
  using Clock = std::chrono::steady_clock;

  double ms = 0;
  int32_t passes = 0;     // of the smaller model
  int32_t tokens = 0;     // that they computed, of all sequences
  int32_t sequences = 0;  // that have drafts

  void StopClock(Clock::time_point start) { ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count(); }
  void operator+=(const DraftWork& other) {
    ms += other.ms;
    passes += other.passes;
    tokens += other.tokens;
    sequences = std::max(sequences, other.sequences);
  }
};

class DraftModel {
 public:
  virtual ~DraftModel() = default;

  // Drafts for all of them in the same passes. Sequences that are not computed yet are, some tokens a call, and have drafts
  // later. Where it fails there are no drafts. Not thread-safe.
  virtual DraftWork Draft(std::vector<ModelDraft>& sequences) = 0;
};

}  // namespace onpolicy
