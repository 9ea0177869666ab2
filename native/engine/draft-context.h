// A smaller model with the same vocabulary, and its cache -> drafts, each sampled as the large model would sample it, with the same random
// numbers.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/context.h"
#include "engine/drafts/draft-model.h"
#include "engine/drafts/drafter.h"

namespace onpolicy {

// Keeps its cache up to date by comparing the tokens of a sequence with the cached ones. So it need not be told of wrong drafts, preempted
// sequences or shared prompts.
class DraftContext : public DraftModel {
 public:
  // `longest`: maximum tokens of a sequence.
  DraftContext(std::shared_ptr<Context> context, const ContextOptions& options, uint32_t longest);

  DraftWork Draft(std::vector<ModelDraft>& sequences) override;

  // Frees the context. Later calls draft nothing. Callable from any thread.
  void Close();

 private:
  // The cache of one sequence id.
  struct Slot {
    std::weak_ptr<Drafter> owner;
    std::string key;              // sequences share prompts only within one key
    std::vector<int32_t> tokens;  // tokens in the cache
    uint64_t used = 0;            // number of the last call that used it
  };
  // A sequence during one call of Draft.
  struct Job : DraftJob {
    size_t slot;
    std::vector<int32_t> missing;  // tokens to compute before the next draft
  };

  std::vector<Job> Begin(std::vector<ModelDraft>& sequences, std::vector<int32_t>* edits);
  // Returns the slot for this sequence, or -1 if all are in use.
  int32_t FindSlot(const std::shared_ptr<Drafter>& drafter);
  // Gives a slot to a sequence, with a copy of the longest prefix that another slot has.
  void Adopt(Slot& slot, const std::shared_ptr<Drafter>& drafter, std::vector<int32_t>* edits);
  // Returns true if a job of this call computes a long prefix that this sequence needs too, as for choices of one request.
  static bool IsComing(const std::vector<Job>& jobs, const Drafter& drafter, size_t known);
  // Computes the missing tokens of all jobs in one pass. Returns false if it failed; the slots are then empty.
  bool Pass(std::vector<Job>& jobs, std::vector<int32_t>* edits, DraftWork* work);
  void Forget(Slot& slot, std::vector<int32_t>* edits);
  // Empties the least recently used slot that this call does not use. Returns false if there is none.
  bool MakeRoom(std::vector<int32_t>* edits);

  std::mutex mutex_;
  std::shared_ptr<Context> context_;
  const size_t batch_tokens_, longest_;
  std::vector<Slot> slots_;
  uint64_t calls_ = 0;
};

}  // namespace onpolicy
