// The layers of a model that predict the token after the next (multi-token prediction), in a context of their own -> drafts: each is
// sampled as the model would sample it, with the same random numbers.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "drafts/draft-model.h"
#include "drafts/drafter.h"
#include "llama/model.h"
#include "llama/step-input.h"
#include "llama/thread-pool.h"
#include "rows/row-sampler.h"

namespace onpolicy {

// Its cache has the sequences of the model's context, and gets the same edits. For each token it needs the model's hidden state at the
// token before. Where one is missing, drafts are worse; no answer depends on them.
class DraftHead : public DraftModel {
 public:
  // The hidden state of a token of the last step, by its index; null: there is none.
  using HiddenOf = std::function<const float*(size_t)>;

  // `params`: those of `target`, the model's context, which must outlive the head. Null where the model has no such layers, or the
  // engine's library does not offer them.
  static std::unique_ptr<DraftHead> Create(const Model& model, llama_context* target, llama_context_params params,
                                           ThreadPool& pool, int32_t sampled_vocab, int32_t threads);
  ~DraftHead() override;

  // Before a pass of `target` over so many tokens, each of which `wants_logits` or not: makes it keep their hidden states.
  void Prepare(const std::vector<int8_t>& wants_logits) const;

  // Of passes from now on.
  void UseThreads(int count) const {
    if (context_) Api().llama_set_n_threads(context_, count, count);
  }

  // Makes an edit of the target's cache in its own.
  void Edit(const int32_t* edit);

  // After a step: computes the tokens of the sequences to follow. Its samples may then be drafted for.
  DraftWork Follow(const StepInput& input, const HiddenOf& hidden_of);

  DraftWork Draft(std::vector<ModelDraft>& sequences) override;

  // Numbers of a hidden state.
  size_t width() const { return width_; }

 private:
  struct Sequence {
    int32_t next = 0;           // position of the token that its cache lacks
    int32_t first = 0;          // position of the first row of `hidden`
    std::vector<float> hidden;  // (rows, width) of the last tokens
  };
  // Tokens with a hidden state each.
  struct Batch {
    std::vector<int32_t> tokens, positions, sequences;
    std::vector<float> hidden;
    std::vector<int8_t> wants_logits;
  };

  DraftHead(const Model& model, llama_context* target, int32_t sampled_vocab, int32_t threads);
  void Add(Batch& batch, int32_t token, int32_t position, int32_t sequence, const float* hidden, bool wants_logits) const;
  bool Decode(const Batch& batch);
  void Remove(int32_t sequence, int32_t from);
  // The state at a position; null: it is not known.
  static const float* HiddenAt(const Sequence& sequence, int32_t position, size_t width);
  // Its context fails: nothing is drafted from now on.
  void GiveUp();

  llama_context* const target_;
  llama_context* context_ = nullptr;
  const size_t width_;
  size_t batch_tokens_ = 0;
  RowSampler rows_;
  std::vector<Sequence> sequences_;
  const StepInput* input_ = nullptr;  // of the last step
  std::vector<int32_t> counts_;
  std::vector<int32_t*> pointers_;
};

}  // namespace onpolicy
