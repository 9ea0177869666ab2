#include "engine/sequence-cache.h"

#include <array>
#include <exception>
#include <string>

#include "base/threads.h"
#include "engine-assumptions/library.h"
#include "engine-assumptions/table/assumptions.h"

namespace onpolicy {
namespace {

// Temporary number of a checkpoint that is copied from one sequence to another.
constexpr int32_t kPassing = -1;

}  // namespace

void SequenceCache::Begin(llama_context* context, const ContextOptions& options, const Model& model) {
  context_ = context;
  is_kv_unified_ = options.is_kv_unified;
  is_recurrent_ = model.is_recurrent();
  rollback_.Begin(options.max_sequences, Api().llama_n_rs_seq(context));
  // In a cache with streams, cells are taken in order up to the sequence's end and not reused. In a pool they need the guard, which acts
  // between batches: a batch must then be a single pass.
  const bool can_guard =
      options.max_sequences <= WindowGuard::kMostSequences && options.batch_tokens <= kPassTokens && !IsBroken(Assumed::kSequences);
  const bool are_kept = options.is_window_cache_full && !is_recurrent_ && (!is_kv_unified_ || can_guard);
  const int32_t window = Api().llama_model_n_swa(model.get());
  window_tokens_ = are_kept ? 0 : window;
  guard_.Begin(context, are_kept && is_kv_unified_ ? window : 0, options.max_sequences);
}

void SequenceCache::Edit(const int32_t* edit) {
  const auto [kind, sequence, target, from, to] = std::array{edit[0], edit[1], edit[2], edit[3], edit[4]};
  if (kind == kMemoryForget) return static_cast<void>(checkpoints_.erase(target));
  if (kind == kMemoryCopy) return Copy(sequence, target, from, to);
  if (kind == kMemoryRemove && is_recurrent_ && from > 0) return CutState(sequence, from);
  rollback_.Replace(sequence);
  if (kind == kMemoryRestore && !RestoreCheckpoint(sequence, target))
    throw Failure("KV_FULL", "the KV cache has no room for a checkpoint");
  Remove(sequence, from, kind == kMemoryRestore ? -1 : to);
}

void SequenceCache::Remove(int32_t sequence, int32_t from, int32_t to) { guard_.Remove(sequence, from, to); }

void SequenceCache::Pass(const int32_t* sequences, size_t count) {
  if (is_recurrent_) rollback_.Pass(sequences, count);
  for (size_t i = 0; i < count; ++i)
    if (i + 1 == count || sequences[i] != sequences[i + 1]) guard_.Guard(sequences[i]);
}

void SequenceCache::CutState(int32_t sequence, int32_t from) {
  llama_memory_t memory = Api().llama_get_memory(context_);
  const int32_t end = Api().llama_memory_seq_pos_max(memory, sequence) + 1;
  if (!rollback_.Cut(sequence, end - from) || !Api().llama_memory_seq_rm(memory, sequence, from, -1))
    throw Failure("BACKEND_FAILED", "recurrent state cannot be taken back by " + std::to_string(end - from) + " tokens");
}

void SequenceCache::Copy(int32_t from, int32_t to, int32_t start, int32_t end) {
  llama_memory_t memory = Api().llama_get_memory(context_);
  if (is_recurrent_) {  // a partial copy is then restored from a checkpoint, and cut
    Api().llama_memory_seq_cp(memory, from, to, -1, -1);
  } else if (is_kv_unified_) {
    Api().llama_memory_seq_cp(memory, from, to, start, end);
    guard_.Guard(to);
  } else {  // only whole sequences can be copied: the tail is cut off afterwards
    Api().llama_memory_seq_cp(memory, from, to, -1, -1);
    if (end >= 0) Api().llama_memory_seq_rm(memory, to, end, -1);
  }
  if (!is_recurrent_) return;
  rollback_.Share(from);
  rollback_.Replace(to);
  // The engine does not copy the fact that a state was taken back.
  if (rollback_.IsCut(from) && SaveCheckpoint(from, kPassing) > 0) {
    RestoreCheckpoint(to, kPassing);
    checkpoints_.erase(kPassing);
  }
}

size_t SequenceCache::SaveCheckpoint(int32_t sequence, int32_t number) {
  const Library& api = Api();
  std::vector<uint8_t> bytes(api.llama_state_seq_get_size_ext(context_, sequence, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY));
  const size_t written = api.llama_state_seq_get_data_ext(context_, bytes.data(), bytes.size(), sequence,
                                                          LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY);
  if (bytes.empty() || written != bytes.size()) return 0;
  checkpoints_[number] = std::move(bytes);
  return written;
}

bool SequenceCache::RestoreCheckpoint(int32_t sequence, int32_t number) const {
  const auto found = checkpoints_.find(number);
  return found != checkpoints_.end() && Restore(sequence, found->second, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY);
}

bool SequenceCache::Restore(int32_t sequence, const std::vector<uint8_t>& bytes, uint32_t flags) const {
  try {
    return Api().llama_state_seq_set_data_ext(context_, bytes.data(), bytes.size(), sequence, flags) == bytes.size();
  } catch (const std::exception&) {
    return false;
  }
}

std::vector<uint8_t> SequenceCache::Save(int32_t sequence) const {
  std::vector<uint8_t> state(Api().llama_state_seq_get_size_ext(context_, sequence, 0));
  if (state.empty() || Api().llama_state_seq_get_data_ext(context_, state.data(), state.size(), sequence, 0) != state.size())
    throw Failure("UNSUPPORTED", "the engine cannot save the cache of this model");
  return state;
}

void SequenceCache::Load(int32_t sequence, const std::vector<uint8_t>& state) {
  rollback_.Replace(sequence);
  if (Restore(sequence, state, /*flags=*/0)) return guard_.Guard(sequence);
  guard_.Remove(sequence, -1, -1);
  throw Failure("KV_FULL", "the saved cache does not fit into this context");
}

void SequenceCache::Keep(const std::function<void()>& work) {
  const Library& api = Api();
  // The cache is saved as a whole, because a save of each sequence leaves out cells behind a window and copies cells that sequences share.
  std::vector<uint8_t> state(api.llama_state_get_size(context_));
  if (api.llama_state_get_data(context_, state.data(), state.size()) != state.size())
    throw Failure("UNSUPPORTED", "the engine cannot save the cache of this model");
  ThreadFailure failure;
  failure.Keep(work);
  if (api.llama_state_set_data(context_, state.data(), state.size()) != state.size())
    throw Failure("BACKEND_FAILED", "the engine could not restore the cells of all sequences");
  guard_.GuardAgain();
  failure.Rethrow();
}

}  // namespace onpolicy
