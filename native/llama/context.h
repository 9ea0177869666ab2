// One step at a time on one model: edits of the KV cache, one forward pass, one sampled token per row.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attention/cell-positions.h"
#include "llama/adapters.h"
#include "llama/context-options.h"
#include "llama/draft-head.h"
#include "llama/expert-record.h"
#include "llama/kept-rows.h"
#include "llama/model.h"
#include "llama/next-step.h"
#include "llama/sequence-cache.h"
#include "llama/step-input.h"
#include "llama/thread-pool.h"
#include "threads/thread-budget.h"

namespace onpolicy {

class Context {
 public:
  static std::shared_ptr<Context> Create(std::shared_ptr<Model> model, const ContextOptions& options);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Fails with KV_FULL (nothing was computed) or ABORTED (the KV cache may hold a part of the step: the caller removes it).
  // Any other failure leaves the context unusable.
  // Where it may run ahead, the next step is laid out for RunAhead. With recurrent state, which cannot be taken back, what was laid
  // out is computed in any case, and kept for the steps that ask for it.
  StepOutput Step(const StepInput& input);

  // Computes the step that was laid out, if any. A Step with the same input uses the outcome; any other call undoes it.
  void RunAhead();
  // Whether that step is this one. Not while Step runs.
  bool IsAhead(const StepInput& input) const { return next_.Covers(input); }
  // Ends RunAhead early: its outcome is not wanted. Callable from any thread. Does nothing with recurrent state.
  void AbortAhead();

  // With the rows of the last step that JavaScript edits.
  RowSampler& rows() { return rows_; }

  // Keeps what of a sequence's cache cannot be cut, as it is now. Steps name it by its number. Returns its bytes; 0: the engine cannot.
  size_t SaveCheckpoint(int32_t sequence, int32_t number);

  // The whole cache of a sequence after `edits`, as bytes that a context of the same shape on the same model can load.
  std::vector<uint8_t> SaveSequence(const std::vector<int32_t>& edits, int32_t sequence);

  // Puts saved bytes into a sequence that is empty after `edits`. Fails with KV_FULL and leaves it empty when they do
  // not fit, or are of another kind of context.
  void LoadSequence(const std::vector<int32_t>& edits, int32_t sequence, const std::vector<uint8_t>& state);

  // To load, mix and free adapters, by whose numbers steps name them. Only between steps.
  Adapters& EditAdapters() {
    EndAhead();
    return adapters_;
  }

  // A file that reads the inputs of these layers drafts from now on, until it is detached. Where the model has a head, it is replaced.
  void AttachHead(std::shared_ptr<Model> model, std::vector<uint32_t> layers);
  void DetachHead();

  int32_t vocab_size() const { return model_->vocab_size(); }

  // Ends the running step early; callable from any thread.
  void Abort();
  // No step runs: an abort that came too late for the last one does not end the next.
  void ClearAbort() { abort_ = false; }

  uint32_t rollback_tokens() const { return cache_.rollback_tokens(); }
  // Tokens of a sequence, the last ones, whose cells it keeps; 0: all.
  int32_t window_tokens() const { return cache_.window_tokens(); }
  const DraftHead* head() const { return head_.get(); }
  // Of the last pass.
  int threads() const { return share_.last(); }

  // After a GPU has failed, freeing what it holds waits for it, which ends the process: context and model are leaked instead.
  // Does nothing on a CPU.
  void Abandon();

 private:
  Context(std::shared_ptr<Model> model, const ContextOptions& options);
  // The pass of a step, with the edits before it -> (tokens) where the logits of each token are. A place below 0 is one of outside_.
  std::vector<int32_t> Pass(const StepInput& input);
  std::vector<int32_t> Decode(const StepInput& input);
  // The media of a step, one after the other, then its tokens. `rows`: index into tokens of what is sampled from. Fills `places`.
  void DecodeMixed(const StepInput& input, const std::vector<int32_t>& rows, std::vector<int32_t>* places);
  void DecodeMedia(const StepInput& input, const MediaRows& media, const std::vector<int32_t>& rows,
                   std::vector<int32_t>* places);
  void DecodeTokens(const StepInput& input, const std::vector<int32_t>& rows);
  void DecodeBatch(llama_batch batch, const int32_t* sequences, bool records_experts);
  // Of the tokens of a step.
  RoutedExperts ExpertsOf(const std::vector<int32_t>& places) const;
  void UseThreads(int count);
  const OutsideRow& OutsideAt(int32_t place) const { return outside_[static_cast<size_t>(-place - 1)]; }
  const float* LogitsAt(int32_t place);
  // Rows of logits -> copies with the ids that samplers know besides, which are impossible. They last until the next step.
  void Pad(std::vector<const float*>* rows);
  // Writes the state that the head reads. False: there is none.
  bool StateAt(int32_t place, float* state) const;
  void SetHead(std::unique_ptr<DraftHead> head);
  DraftTarget AsTarget();
  // Forgets what RunAhead did, but for the tokens at `used`, ascending; with recurrent state, keeps its rows.
  void EndAhead(const std::vector<int32_t>& used = {});
  void ComputeAhead();
  void ForgetAhead();
  // Computes what was laid out, and keeps its rows of logits for the steps that ask for these tokens.
  void KeepAhead();
  // Pass with recurrent state.
  std::vector<int32_t> PassBehindAhead(const StepInput& input);
  // Edits of the sequences in `except` are left out. Does all of them, and then throws the first failure.
  void EditMemory(const std::vector<int32_t>& edits, const std::vector<int32_t>& except = {});
  void EditSequence(const int32_t* edit);

  std::shared_ptr<Model> model_;
  llama_context* context_ = nullptr;
  llama_context_params params_{};  // that it was made with
  const int32_t threads_;
  std::unique_ptr<ThreadPool> pool_;
  attention::CellPositions positions_;
  ThreadBudget::User share_;
  Adapters adapters_;
  const bool is_kv_unified_;
  const bool is_recurrent_;
  RowSampler rows_;
  std::atomic<bool> abort_{false};
  SequenceCache cache_;
  KeptRows kept_;
  ExpertRecord record_;
  RoutedExperts experts_;  // of the engine's last batch of tokens, where it was recorded
  bool must_finish_ = false;  // the running pass is not aborted
  NextStep next_;
  bool is_next_computed_ = false;
  bool is_abandoned_ = false;
  std::atomic<bool> abort_ahead_{false};
  const std::function<bool()> is_aborted_ = [this] { return !must_finish_ && (abort_ || abort_ahead_); };
  // Reused between steps: llama_batch wants one array of sequence ids per token.
  std::vector<int32_t> sequence_counts_;
  std::vector<int32_t*> sequence_pointers_;
  std::vector<int8_t> wants_logits_;
  std::unique_ptr<DraftHead> head_;  // null: it drafts nothing
  std::vector<OutsideRow> outside_;  // rows kept before, and of media that are sampled from: at place -1, -2, ...
  std::vector<std::vector<float>> padded_;  // rows of a model with fewer ids than samplers know
};

}  // namespace onpolicy
