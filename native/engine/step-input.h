// The input of one step, and its output.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "engine-assumptions/expert-record.h"
#include "engine/row-sampler.h"

namespace onpolicy {

// Kinds of KV cache edits in StepInput::memory_edits.
enum MemoryEdit : int32_t {
  kMemoryRemove = 0,
  kMemoryCopy = 1,
  kMemoryRestore = 2,  // `target` is the number of a checkpoint, which ends before `from`
  kMemoryForget = 3,   // frees checkpoint `target`
};

// The adapter number of a step on the model's own weights.
constexpr uint32_t kNoAdapter = 0;

// Rows of embeddings of a picture or a sound, in place of tokens. They are decoded separately, before the tokens.
struct MediaRows {
  int32_t at = 0;                                  // index into tokens of the first row; the tokens there are not read
  int32_t count = 0;
  std::shared_ptr<const std::vector<float>> rows;  // all rows of the chunk
  int32_t first = 0;                               // index in the chunk of the first row
  std::vector<int32_t> positions;                  // (planes, count); empty: those of the step
  bool is_non_causal = false;                      // all rows of the chunk see each other
};

struct StepInput : RowsInput {  // score_rows: the first of the three is an index into tokens
  uint32_t adapter = kNoAdapter;      // adapter of all tokens, by its number in Adapters
  std::vector<int32_t> memory_edits;  // (edits, 5): kind, sequence, target sequence, from position, to position (-1: end)
  std::vector<int32_t> tokens;        // (tokens)
  std::vector<int32_t> positions;     // (tokens)
  std::vector<int32_t> sequences;     // (tokens)
  std::vector<MediaRows> media;       // ascending by `at`
  std::vector<int32_t> sample_rows;   // (samplers) index into tokens of the logits that the sampler reads
  std::vector<int32_t> followed;      // sequences that the model's own head computes too, so that it may draft for them
  bool records_experts = false;       // the output has the experts that each token took
  bool may_run_ahead = false;             // the next step is likely to take exactly the tokens that this one samples
};

// The output of one step.
struct StepOutput : RowsOutput {
  RoutedExperts experts;  // experts of its tokens, if the step records them
};

}  // namespace onpolicy
