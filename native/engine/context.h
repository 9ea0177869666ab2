// Runs one step at a time on one model: edits of the KV cache, one forward pass, one sampled token per row.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/thread-budget.h"
#include "engine-assumptions/expert-record.h"
#include "engine-assumptions/first-pass.h"
#include "engine/adapters.h"
#include "engine/context-options.h"
#include "engine/draft-head.h"
#include "engine/kept-rows.h"
#include "engine/model.h"
#include "engine/next-step.h"
#include "engine/sequence-cache.h"
#include "engine/step-input.h"
#include "engine/thread-pool.h"

namespace onpolicy {

class Context {
 public:
  static std::shared_ptr<Context> Create(std::shared_ptr<Model> model, const ContextOptions& options);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Runs one step. Throws KV_FULL (nothing was computed) or ABORTED (the KV cache may hold a part of the step, which the caller removes).
  // After any other failure the context is unusable.
  // If `input` may run ahead, the next step is planned for RunAhead. Recurrent state cannot be taken back, so with it a planned step is
  // always computed, and its rows are kept for the steps that ask for them.
  StepOutput Step(const StepInput& input);

  // Computes the planned step, if any. A Step with the same input uses the result; any other call undoes it.
  void RunAhead();
  // Returns true if the planned step is `input`. Must not be called while Step runs.
  bool IsAhead(const StepInput& input) const { return next_.Covers(input); }
  // Ends RunAhead early if its result is not needed. Callable from any thread. Does nothing with recurrent state.
  void AbortAhead();

  // Also holds the rows of the last step that JavaScript edits.
  RowSampler& rows() { return rows_; }

  // Saves the part of a sequence's cache that cannot be cut, under a number that steps can restore. Returns its size in bytes, or 0 if the
  // engine cannot save it.
  size_t SaveCheckpoint(int32_t sequence, int32_t number);

  // Returns the whole cache of a sequence after `edits`, as bytes that a context of the same shape on the same model can load.
  std::vector<uint8_t> SaveSequence(const std::vector<int32_t>& edits, int32_t sequence);

  // Loads saved bytes into a sequence that is empty after `edits`. Throws KV_FULL, and leaves the sequence empty, if they do not fit or are
  // from another kind of context.
  void LoadSequence(const std::vector<int32_t>& edits, int32_t sequence, const std::vector<uint8_t>& state);

  // Returns the adapters, to load, mix and free them. Steps refer to them by number. Call it only between steps.
  Adapters& EditAdapters() {
    EndAhead();
    return adapters_;
  }

  // Attaches a draft model that reads the inputs of these layers, or, without any, the last states and the cache (a kSharing head). It
  // drafts until it is detached, and replaces the model's own head. After BACKEND_FAILED the context is unusable.
  void AttachHead(std::shared_ptr<Model> model, std::vector<uint32_t> layers);
  void DetachHead();

  int32_t vocab_size() const { return model_->vocab_size(); }

  // Ends the running step early; callable from any thread.
  void Abort();
  // Clears an abort that came too late for the last step, so that it does not end the next. Call it while no step runs.
  void ClearAbort() { abort_ = false; }

  uint32_t rollback_tokens() const { return cache_.rollback_tokens(); }
  // Number of a sequence's last tokens whose cells are kept; 0 means all.
  int32_t window_tokens() const { return cache_.window_tokens(); }
  const DraftHead* head() const { return head_.get(); }
  // Number of threads of the last pass.
  int threads() const { return share_.last(); }

  // Leaks the context and its model after a GPU failure, because freeing their memory would wait for the GPU and end the process. Does
  // nothing on a CPU.
  void Abandon();

 private:
  Context(std::shared_ptr<Model> model, const ContextOptions& options);
  // Runs a step's edits and pass. Returns the place of each token's logits (tokens); a negative place is in outside_.
  std::vector<int32_t> Pass(const StepInput& input);
  std::vector<int32_t> Decode(const StepInput& input);
  // Decodes the media of a step one after the other, then its tokens. `rows`: indexes of the tokens that are sampled from. Fills `places`.
  void DecodeMixed(const StepInput& input, const std::vector<int32_t>& rows, std::vector<int32_t>* places);
  void DecodeMedia(const StepInput& input, const MediaRows& media, const std::vector<int32_t>& rows,
                   std::vector<int32_t>* places);
  void DecodeTokens(const StepInput& input, const std::vector<int32_t>& rows);
  void DecodeBatch(llama_batch batch, const int32_t* sequences, bool records_experts);
  // Returns the experts of a step's tokens.
  RoutedExperts ExpertsOf(const std::vector<int32_t>& places) const;
  void UseThreads(int count);
  const OutsideRow& OutsideAt(int32_t place) const { return outside_[static_cast<size_t>(-place - 1)]; }
  const float* LogitsAt(int32_t place);
  // Replaces rows of logits by copies that also have the ids that only the samplers know, with logits of -infinity. The copies last until
  // the next step.
  void Pad(std::vector<const float*>* rows);
  // Writes the state that the head reads. Returns false if there is none.
  bool StateAt(int32_t place, float* state) const;
  void SetHead(std::unique_ptr<DraftHead> head);
  DraftTarget AsTarget();
  // Undoes RunAhead, except for the tokens at `used`, ascending. With recurrent state, keeps its rows.
  void EndAhead(const std::vector<int32_t>& used = {});
  void ComputeAhead();
  void ForgetAhead();
  // Computes the planned step, and keeps its rows of logits for the steps that ask for these tokens.
  void KeepAhead();
  // Pass for recurrent state.
  std::vector<int32_t> PassBehindAhead(const StepInput& input);
  // Makes all edits except those of sequences in `except`, and then throws the first failure.
  void EditMemory(const std::vector<int32_t>& edits, const std::vector<int32_t>& except = {});
  void EditSequence(const int32_t* edit);

  std::shared_ptr<Model> model_;
  llama_context* context_ = nullptr;
  llama_context_params params_{};  // as the context was created with
  const int32_t threads_;
  std::unique_ptr<ThreadPool> pool_;
  attention::CellPositions positions_;
  FirstPass first_pass_;
  ThreadBudget::User share_;
  Adapters adapters_;
  const bool is_kv_unified_;
  const bool is_recurrent_;
  RowSampler rows_;
  std::atomic<bool> abort_{false};
  SequenceCache cache_;
  KeptRows kept_;
  ExpertRecord record_;
  RoutedExperts experts_;  // experts of the engine's last recorded batch
  bool must_finish_ = false;  // true: the running pass cannot be aborted
  NextStep next_;
  bool is_next_computed_ = false;
  bool is_abandoned_ = false;
  std::atomic<bool> abort_ahead_{false};
  const std::function<bool()> is_aborted_ = [this] { return !must_finish_ && (abort_ || abort_ahead_); };
  // Reused between steps: llama_batch wants one array of sequence ids per token.
  std::vector<int32_t> sequence_counts_;
  std::vector<int32_t*> sequence_pointers_;
  std::vector<int8_t> wants_logits_;
  std::unique_ptr<DraftHead> head_;  // null: the context has no draft head
  std::vector<OutsideRow> outside_;  // rows kept before, and of media that are sampled from: at place -1, -2, ...
  std::vector<std::vector<float>> padded_;  // rows of a model with fewer ids than samplers know
};

}  // namespace onpolicy
