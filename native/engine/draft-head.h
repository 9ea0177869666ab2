// A head that predicts tokens from a model's hidden states, with its context -> drafts, each sampled as the model would sample it, with the
// same random numbers. It is a layer of the model itself (multi-token prediction) or a separate file (EAGLE-3, an assistant of Gemma 4).
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/drafts/draft-model.h"
#include "engine/drafts/drafter.h"
#include "engine/model.h"
#include "engine/row-sampler.h"
#include "engine/sequence-cache.h"
#include "engine/step-input.h"
#include "engine/thread-pool.h"

namespace onpolicy {

// The context that a head drafts for. It must outlive the head.
struct DraftTarget {
  const Model& model;
  llama_context* context;
  llama_context_params params;  // parameters of that context
  ThreadPool& pool;
  SequenceCache& cache;
  int32_t sampled_vocab;
  int32_t threads;
};

enum class HeadKind {
  kOwn,      // layers of the target
  kEagle,    // a file that reads the inputs of some of the target's layers
  kSharing,  // a file without keys and values, which reads those of the target (an assistant of Gemma 4)
};

// Has the sequences of the model's context in its cache, and gets the same edits. For each token it needs the model's hidden state at the
// token before. If a state is missing, drafts are worse, but answers do not change. Tokens wait with their states until a draft is wanted
// or many wait, so that a sequence without drafts costs almost nothing. A head that shares the target's cache has no cells and computes
// no waiting tokens; all drafts of a step are at the position of the token sampled before them, so that they see the same cells.
class DraftHead : public DraftModel {
 public:
  // Writes the state of a token of the last step, by its index. Returns false if there is none.
  using ReadState = std::function<bool(size_t, float*)>;

  // Returns null if the model has no such layers, or the engine's library does not offer them.
  static std::unique_ptr<DraftHead> CreateOwn(const DraftTarget& target);
  // `layers`: layers of the target whose inputs the file was trained on. Throws if the file does not fit the target.
  static std::unique_ptr<DraftHead> CreateEagle(const DraftTarget& target, std::shared_ptr<Model> model, std::vector<uint32_t> layers);
  // The target must be a model of Gemma 4, whose last layers have keys and values of the sizes that the file reads. Throws BACKEND_FAILED
  // if the target's cache is lost.
  static std::unique_ptr<DraftHead> CreateSharing(const DraftTarget& target, std::shared_ptr<Model> model);
  ~DraftHead() override;

  // Call it before a pass of the target: makes the target keep the states of its tokens. `wants_logits` (tokens).
  void Prepare(const std::vector<int8_t>& wants_logits);
  // Writes the state of a token of the target's last pass, by its place there. Returns false if there is none.
  bool StateAt(int32_t place, float* state) const;
  // Number of floats in a state.
  size_t state_width() const { return state_width_; }

  // Sets the number of threads for the following passes.
  void UseThreads(int count) const {
    if (context_) Api().llama_set_n_threads(context_, count, count);
  }

  // Applies an edit of the target's cache to its own.
  void Edit(const int32_t* edit);

  // Call it after a step: takes the tokens of the followed sequences. The step's samples may then be drafted for.
  DraftWork Follow(const StepInput& input, const ReadState& read_state);

  DraftWork Draft(std::vector<ModelDraft>& sequences) override;

  // Maximum drafts of one step if each needs a layer; 0 means any number.
  int32_t most_drafts() const { return layers_in_chain_ > 1 ? layers_in_chain_ : 0; }

 private:
  struct Sequence {
    int32_t next = 0;               // position of the first token that is not in the cache
    bool has_cells = false;
    int32_t first = 0;              // position of the first row
    std::vector<int32_t> tokens;    // (rows) the last ones: waiting tokens and some before them
    std::vector<float> states;      // (rows, state width)
    std::vector<uint8_t> is_known;  // (rows) 1 if there is a state

    int32_t end() const { return first + static_cast<int32_t>(tokens.size()); }
    bool Knows(int32_t position) const {
      return position >= first && position < end() && is_known[static_cast<size_t>(position - first)];
    }
  };
  // Tokens, each with the hidden state of the token before it.
  struct Batch {
    std::vector<int32_t> tokens, positions, sequences;
    std::vector<float> hidden;  // (tokens, width)
    std::vector<int8_t> wants_logits;
  };
  // A sequence during one call of Draft.
  struct Job : DraftJob {
    size_t limit;
    int32_t sequence, position;  // sequence and position of the sampled token
    Batch rows = {};             // waiting tokens, the sampled token and its drafts
    size_t computed = 0;         // rows computed so far
  };

  DraftHead(const DraftTarget& target, std::shared_ptr<Model> model, HeadKind kind, std::vector<uint32_t> layers);
  void Open(llama_model* model, llama_context_params params, ThreadPool& pool);
  void Add(Batch& batch, int32_t token, int32_t position, int32_t sequence, const float* hidden, bool wants_logits) const;
  // Adds a row of `from` to a batch.
  void AddRow(Batch& batch, const Batch& from, size_t row, bool wants_logits) const;
  bool Decode(const Batch& batch);
  // Computes rows without logits, in as many passes as needed, through each layer of a chain. Throws if a pass fails.
  void Compute(const std::vector<Batch>& waiting, DraftWork* work);
  void Remove(int32_t sequence, int32_t from);
  // Forgets rows that no draft needs any more.
  void Trim(Sequence& sequence) const;
  // Takes the tokens of a sequence that a step computed.
  void Take(int32_t sequence, const StepInput& input, size_t begin, size_t end, const ReadState& read_state);
  // Returns and removes the waiting tokens of each sequence, with the hidden state behind them as one more row without a token.
  std::vector<Batch> TakeWaiting(const std::vector<int32_t>& sequences);
  // Converts states of the target to the hidden states that a pass takes: (rows, width).
  std::vector<float> Hidden(std::vector<float> states);
  std::vector<Job> JobsOf(std::vector<ModelDraft>& drafts, DraftWork* work);
  // Adds one draft to each job. Returns false if the pass failed.
  bool DraftOnce(std::vector<Job*>& active, DraftWork* work);
  // Frees its context. It drafts nothing from then on.
  void Release();

  llama_context* const target_;
  SequenceCache& cache_;                // the target's
  const std::shared_ptr<Model> model_;  // null: the head is part of the target
  const HeadKind kind_;
  const std::vector<uint32_t> layers_;  // the target's layers whose inputs are read; empty: the head reads the target's last hidden state
  const size_t target_width_;
  llama_context* context_ = nullptr;
  const size_t width_, state_width_;
  const int32_t layers_in_chain_;
  size_t batch_tokens_ = 0;
  RowSampler rows_;
  std::vector<Sequence> sequences_;
  std::vector<int8_t> has_state_;  // (tokens of the target's last pass); kSharing
  const StepInput* input_ = nullptr;  // the last step
  std::vector<int32_t> counts_;
  std::vector<int32_t*> pointers_;
};

}  // namespace onpolicy
