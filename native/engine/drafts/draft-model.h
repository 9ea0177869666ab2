// The tokens of many sequences -> tokens that a smaller model predicts next. Abstracts from the model that computes them.
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

// A sequence to draft for.
struct ModelDraft {
  std::shared_ptr<Drafter> drafter;  // holds the tokens of the sequence
  const Sampler* sampler = nullptr;  // state before the next token; drafts are sampled with a copy
  TokenMatcher* matcher = nullptr;  // null: unconstrained; restored after the call
  size_t limit = 0;                  // maximum drafts
  std::vector<int32_t>* drafts = nullptr;  // filled
  size_t row = 0;  // index of the step's sample that the drafts follow
};

// A sequence during one call of a draft model. Holds a copy of its sampler, and its matcher, whose accepted tokens it rolls back.
struct DraftJob {
  explicit DraftJob(ModelDraft& wanted)
      : draft(&wanted), sampler(std::make_shared<Sampler>(*wanted.sampler)), matcher(std::shared_ptr<void>(), wanted.matcher) {}

  ModelDraft* draft;
  std::shared_ptr<Sampler> sampler;
  std::shared_ptr<TokenMatcher> matcher;  // does not own

  // Takes the token that a pass sampled. Returns false if there is none.
  bool Take(const RowResult& row) {
    if (row.status != RowStatus::kSampled || row.token < 0) return false;
    accepted_ += 1 + row.forced.size();
    draft->drafts->push_back(row.token);
    draft->drafts->insert(draft->drafts->end(), row.forced.begin(), row.forced.end());
    return true;
  }
  // Restores the matcher. Returns true if there are drafts.
  bool End() {
    if (matcher) matcher->Rollback(accepted_);
    if (draft->drafts->size() > draft->limit) draft->drafts->resize(draft->limit);
    return !draft->drafts->empty();
  }

 private:
  size_t accepted_ = 0;  // tokens to roll back in the matcher
};

// Cost of drafts.
struct DraftWork {
  using Clock = std::chrono::steady_clock;

  double ms = 0;
  int32_t passes = 0;     // passes of draft models
  int32_t tokens = 0;     // computed in these passes, over all sequences
  int32_t sequences = 0;  // sequences with drafts

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

  // Drafts for all sequences in the same passes. A sequence that is not computed yet is computed over several calls and has drafts later. A
  // failure leaves sequences without drafts. Not thread-safe.
  virtual DraftWork Draft(std::vector<ModelDraft>& sequences) = 0;
};

}  // namespace onpolicy
