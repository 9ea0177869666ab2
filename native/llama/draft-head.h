// What predicts further tokens from a model's hidden states, in a context of its own -> drafts: each is sampled as the model would sample
// it, with the same random numbers. It is a layer of the model itself (multi-token prediction), or a file of its own (EAGLE-3).
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "drafts/draft-model.h"
#include "drafts/drafter.h"
#include "llama/model.h"
#include "llama/step-input.h"
#include "llama/thread-pool.h"
#include "rows/row-sampler.h"

namespace onpolicy {

// What a head drafts for. The context must outlive the head.
struct DraftTarget {
  const Model& model;
  llama_context* context;
  llama_context_params params;  // of that context
  ThreadPool& pool;
  int32_t sampled_vocab;
  int32_t threads;
};

// Its cache has the sequences of the model's context, and gets the same edits. For each token it needs the model's hidden state at the
// token before. Where one is missing, drafts are worse; no answer depends on them. Tokens wait with their states until a draft is wanted
// or many wait: a sequence that has no drafts costs next to nothing.
class DraftHead : public DraftModel {
 public:
  // Writes the state of a token of the last step, by its index. False: there is none.
  using ReadState = std::function<bool(size_t, float*)>;

  // Null where the model has no such layers, or the engine's library does not offer them.
  static std::unique_ptr<DraftHead> CreateOwn(const DraftTarget& target);
  // `layers`: of the target, whose inputs the file was trained on.
  static std::unique_ptr<DraftHead> CreateEagle(const DraftTarget& target, std::shared_ptr<Model> model, std::vector<uint32_t> layers);
  ~DraftHead() override;

  // Before a pass of the target over so many tokens, each of which `wants_logits` or not: makes it keep their states.
  void Prepare(const std::vector<int8_t>& wants_logits) const;
  // Writes the state of a token of the target's last pass, by its place there. False: there is none.
  bool StateAt(int32_t place, float* state) const;
  // Numbers of a state.
  size_t state_width() const { return state_width_; }

  // Of passes from now on.
  void UseThreads(int count) const {
    if (context_) Api().llama_set_n_threads(context_, count, count);
  }

  // Makes an edit of the target's cache in its own.
  void Edit(const int32_t* edit);

  // After a step: takes the tokens of the sequences to follow. Its samples may then be drafted for.
  DraftWork Follow(const StepInput& input, const ReadState& read_state);

  DraftWork Draft(std::vector<ModelDraft>& sequences) override;

  // Drafts of one step at most, as each has a layer of its own; 0: any number.
  int32_t most_drafts() const { return layers_in_chain_ > 1 ? layers_in_chain_ : 0; }
  bool is_own() const { return layers_.empty(); }

 private:
  struct Sequence {
    int32_t next = 0;               // position of the token that its cache lacks
    bool has_cells = false;
    int32_t first = 0;              // position of the first row
    std::vector<int32_t> tokens;    // (rows) the last ones: those that wait, and some before
    std::vector<float> states;      // (rows, state width)
    std::vector<uint8_t> is_known;  // (rows) whether there is a state

    int32_t end() const { return first + static_cast<int32_t>(tokens.size()); }
    bool Knows(int32_t position) const {
      return position >= first && position < end() && is_known[static_cast<size_t>(position - first)];
    }
  };
  // Tokens with the hidden state of the one before each.
  struct Batch {
    std::vector<int32_t> tokens, positions, sequences;
    std::vector<float> hidden;  // (tokens, width)
    std::vector<int8_t> wants_logits;
  };
  // A sequence on its way through one call of Draft.
  struct Job : DraftJob {
    size_t limit;
    int32_t sequence, position;  // of the sampled token
    Batch rows = {};             // those that wait, the sampled token and its drafts
    size_t computed = 0;         // of the rows
  };

  DraftHead(const DraftTarget& target, std::shared_ptr<Model> model, std::vector<uint32_t> layers);
  void Open(llama_model* model, llama_context_params params, ThreadPool& pool);
  void Add(Batch& batch, int32_t token, int32_t position, int32_t sequence, const float* hidden, bool wants_logits) const;
  // Adds a row of `from`, and wants logits behind it or not.
  void AddRow(Batch& batch, const Batch& from, size_t row, bool wants_logits) const;
  bool Decode(const Batch& batch);
  // Rows without logits, in as many passes as they take, under each layer of a chain. Throws where one fails.
  void Compute(const std::vector<Batch>& waiting, DraftWork* work);
  void Remove(int32_t sequence, int32_t from);
  // The tokens of a sequence that were computed in a step.
  void Take(int32_t sequence, const StepInput& input, size_t begin, size_t end, const ReadState& read_state);
  // The tokens of each sequence that wait, and the hidden state behind them as one more row without a token. They wait no more.
  std::vector<Batch> TakeWaiting(const std::vector<int32_t>& sequences);
  // States of the target -> those that a pass takes: (rows, width).
  std::vector<float> Hidden(std::vector<float> states);
  std::vector<Job> JobsOf(std::vector<ModelDraft>& drafts, DraftWork* work);
  // Each of these gets a draft more. False: the pass failed.
  bool DraftOnce(std::vector<Job*>& active, DraftWork* work);
  // Frees its context: nothing is drafted from now on.
  void Release();

  llama_context* const target_;
  const std::shared_ptr<Model> model_;  // null: the target's own layers
  const std::vector<uint32_t> layers_;  // of the target, whose inputs are read; empty: the state that its own layers read
  const size_t target_width_;
  llama_context* context_ = nullptr;
  const size_t width_, state_width_;
  const int32_t layers_in_chain_;
  size_t batch_tokens_ = 0;
  RowSampler rows_;
  std::vector<Sequence> sequences_;
  const StepInput* input_ = nullptr;  // of the last step
  std::vector<int32_t> counts_;
  std::vector<int32_t*> pointers_;
};

}  // namespace onpolicy
