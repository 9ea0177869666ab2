// What one step computes, and what comes of it.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "llama/expert-record.h"
#include "rows/row-sampler.h"

namespace onpolicy {

// Kinds of KV cache edits, as they stand in StepInput::memory_edits.
enum MemoryEdit : int32_t {
  kMemoryRemove = 0,
  kMemoryCopy = 1,
  kMemoryRestore = 2,  // `target` is the number of a checkpoint, which ends before `from`
  kMemoryForget = 3,   // frees checkpoint `target`
};

// The adapter number of a step on the model's own weights.
constexpr uint32_t kNoAdapter = 0;

// Rows of embeddings of a picture or a sound, in the place of tokens. They are decoded by themselves, before the tokens.
struct MediaRows {
  int32_t at = 0;                                  // index into tokens of the first row; what stands there is not read
  int32_t count = 0;
  std::shared_ptr<const std::vector<float>> rows;  // of the whole chunk
  int32_t first = 0;                               // row of the chunk that the first one is
  std::vector<int32_t> positions;                  // (planes, count); empty: those of the step
  bool is_non_causal = false;                      // all rows of the chunk see each other
};

struct StepInput : RowsInput {  // score_rows: the first of the three is an index into tokens
  uint32_t adapter = kNoAdapter;      // which all tokens go through, by the number that Adapters gave it
  std::vector<int32_t> memory_edits;  // (edits, 5): kind, sequence, target sequence, from position, to position (-1: end)
  std::vector<int32_t> tokens;        // (tokens)
  std::vector<int32_t> positions;     // (tokens)
  std::vector<int32_t> sequences;     // (tokens)
  std::vector<MediaRows> media;       // ascending by `at`
  std::vector<int32_t> sample_rows;   // (samplers) index into tokens: whose logits the sampler sees
  std::vector<int32_t> followed;      // sequences whose tokens the model's own head computes, too: it may draft for them
  bool records_experts = false;       // the outcome says which experts each token took
  bool may_run_ahead = false;             // the next step is likely to take exactly the tokens that this one samples
};

// What comes of it.
struct StepOutput : RowsOutput {
  RoutedExperts experts;  // of its tokens, where the step records them
};

}  // namespace onpolicy
