// A smaller model of the same vocabulary and its cache -> drafts: each is sampled as the large model would sample it, with the
// same random numbers.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "drafts/draft-model.h"
#include "drafts/drafter.h"
#include "llama/context.h"

namespace onpolicy {

// The cache follows the tokens of a sequence by comparing them with what it holds. So it needs no news of drafts that were
// wrong, of preempted sequences and of shared prompts.
class DraftContext : public DraftModel {
 public:
  // `longest`: tokens of a sequence at most.
  DraftContext(std::shared_ptr<Context> context, const ContextOptions& options, uint32_t longest);

  DraftWork Draft(std::vector<ModelDraft>& sequences) override;

  // Frees the context. Later calls draft nothing. Callable from any thread.
  void Close();

 private:
  // The cache of one sequence id.
  struct Slot {
    std::weak_ptr<Drafter> owner;
    std::string key;              // prompts are shared within one
    std::vector<int32_t> tokens;  // that are in the cache
    uint64_t used = 0;            // number of the last call that used it
  };
  // A sequence on its way through one call.
  struct Job : DraftJob {
    size_t slot;
    std::vector<int32_t> missing;  // tokens to compute before the next draft
  };

  std::vector<Job> Begin(std::vector<ModelDraft>& sequences, std::vector<int32_t>* edits);
  // The slot that will hold this sequence; -1: all are in use.
  int32_t FindSlot(const std::shared_ptr<Drafter>& drafter);
  // Gives a slot to a sequence, with what another slot has of its tokens.
  void Adopt(Slot& slot, const std::shared_ptr<Drafter>& drafter, std::vector<int32_t>* edits);
  // Whether one of these jobs computes much that this sequence needs as well: choices of one request.
  static bool IsComing(const std::vector<Job>& jobs, const Drafter& drafter, size_t known);
  // One pass over what the jobs miss. False: it failed, and the slots are empty.
  bool Pass(std::vector<Job>& jobs, std::vector<int32_t>* edits, DraftWork* work);
  void Forget(Slot& slot, std::vector<int32_t>* edits);
  // Empties the least recently used slot that no job of this call has. False: there is none.
  bool MakeRoom(std::vector<int32_t>* edits);

  std::mutex mutex_;
  std::shared_ptr<Context> context_;
  const size_t batch_tokens_, longest_;
  std::vector<Slot> slots_;
  uint64_t calls_ = 0;
};

}  // namespace onpolicy
