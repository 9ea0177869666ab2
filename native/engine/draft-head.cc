#include "engine/draft-head.h"

#include <algorithm>

#include "base/compute-turns.h"

namespace onpolicy {
namespace {

// Minimum of rows kept per sequence. Drafts of the next step may turn out wrong from any of them on.
constexpr int32_t kKeptRows = 64;
// Maximum of waiting tokens per sequence. They take memory, and delay the first draft.
constexpr int32_t kMostWaiting = 256;
// Number of states encoded at a time. The engine reserves as many rows of logits, though it writes none.
constexpr size_t kEncodedRows = 64;

}  // namespace

void DraftHead::Prepare(const std::vector<int8_t>& wants_logits) {
  if (!context_ || !layers_.empty()) return;
  // Drafts follow tokens that are sampled from, so that other states are not needed.
  if (kind_ == HeadKind::kSharing) {
    has_state_ = wants_logits;
    return Api().set_embeddings_nextn(target_, true, true);
  }
  // The states of all tokens lie in the order in which the engine computed them; those of outputs lie in the order of the batch.
  const bool is_masked = std::all_of(wants_logits.begin(), wants_logits.end(), [](int8_t wants) { return wants != 0; });
  Api().set_embeddings_nextn(target_, true, is_masked);
}

bool DraftHead::StateAt(int32_t place, float* state) const {
  if (!context_) return false;
  if (kind_ == HeadKind::kSharing && !has_state_[static_cast<size_t>(place)]) return false;
  if (layers_.empty()) {
    const float* row = Api().get_embeddings_nextn_ith(target_, place);
    if (row) std::copy_n(row, state_width_, state);
    return row != nullptr;
  }
  for (uint32_t layer : layers_) {
    const float* rows = Api().get_embeddings_layer_inp(target_, layer);
    state = std::copy_n(rows + static_cast<size_t>(place) * target_width_, target_width_, state);
  }
  return true;
}

void DraftHead::Remove(int32_t sequence, int32_t from) {
  Api().llama_memory_seq_rm(Api().llama_get_memory(context_), sequence, from, -1);
  Sequence& cut = sequences_[static_cast<size_t>(sequence)];
  cut.next = std::min(cut.next, from);
  cut.has_cells = cut.has_cells && from > 0;
  if (from < cut.first) cut.first = from;
  const auto rows = static_cast<size_t>(from - cut.first);
  if (cut.tokens.size() <= rows) return;
  cut.tokens.resize(rows);
  cut.is_known.resize(rows);
  cut.states.resize(rows * state_width_);
}

void DraftHead::Edit(const int32_t* edit) {
  if (!context_ || edit[0] == kMemoryForget) return;
  if (edit[0] != kMemoryCopy) {  // restoring a checkpoint removes the cells behind it
    if (edit[4] < 0) Remove(edit[1], std::max(edit[3], 0));
    else Remove(edit[1], 0);  // a hole in the middle: the rest cannot be used
    return;
  }
  const Sequence& from = sequences_[static_cast<size_t>(edit[1])];
  Remove(edit[2], 0);
  Api().llama_memory_seq_cp(Api().llama_get_memory(context_), edit[1], edit[2], -1, -1);
  Sequence& to = sequences_[static_cast<size_t>(edit[2])];
  to = from;
  if (edit[4] >= 0) Remove(edit[2], edit[4]);
}

void DraftHead::Add(Batch& batch, int32_t token, int32_t position, int32_t sequence, const float* hidden, bool wants_logits) const {
  batch.tokens.push_back(token);
  batch.positions.push_back(position);
  batch.sequences.push_back(sequence);
  batch.wants_logits.push_back(wants_logits);
  if (hidden) batch.hidden.insert(batch.hidden.end(), hidden, hidden + width_);
  else batch.hidden.resize(batch.hidden.size() + width_, 0.0f);
}

void DraftHead::AddRow(Batch& batch, const Batch& from, size_t row, bool wants_logits) const {
  Add(batch, from.tokens[row], from.positions[row], from.sequences[row], &from.hidden[row * width_], wants_logits);
}

bool DraftHead::Decode(const Batch& batch) {
  const size_t count = batch.tokens.size();
  counts_.assign(count, 1);
  pointers_.resize(count);
  for (size_t i = 0; i < count; ++i) pointers_[i] = const_cast<int32_t*>(&batch.sequences[i]);
  llama_batch raw{};
  raw.n_tokens = static_cast<int32_t>(count);
  raw.token = const_cast<int32_t*>(batch.tokens.data());
  raw.embd = const_cast<float*>(batch.hidden.data());
  raw.pos = const_cast<int32_t*>(batch.positions.data());
  raw.n_seq_id = counts_.data();
  raw.seq_id = pointers_.data();
  raw.logits = const_cast<int8_t*>(batch.wants_logits.data());
  const ComputeTurns::Step turn([] { return false; });
  return turn.has_turn() && Api().llama_decode(context_, raw) == 0;
}

void DraftHead::Compute(const std::vector<Batch>& waiting, DraftWork* work) {
  const llama_memory_t memory = Api().llama_get_memory(context_);
  Batch batch;
  for (const Batch& rows : waiting)
    for (size_t row = 0; row < rows.tokens.size(); ++row) AddRow(batch, rows, row, false);
  work->tokens += static_cast<int32_t>(batch.tokens.size());
  for (size_t first = 0; first < batch.tokens.size(); first += batch_tokens_) {
    const size_t end = std::min(first + batch_tokens_, batch.tokens.size());
    Batch part;
    for (size_t row = first; row < end; ++row) AddRow(part, batch, row, false);
    for (int32_t layer = layers_in_chain_ - 1; layer >= 0; --layer) {
      if (layers_in_chain_ > 1) Api().set_nextn_layer_offset(context_, layer);
      // Each layer fills its part of the same cells, so that they are removed and allocated again.
      for (size_t i = 0; layer + 1 < layers_in_chain_ && i < part.tokens.size(); ++i)
        if (i == 0 || part.sequences[i] != part.sequences[i - 1])
          Api().llama_memory_seq_rm(memory, part.sequences[i], part.positions[i], -1);
      if (!Decode(part)) throw std::bad_alloc();
      work->passes += 1;
    }
  }
}

std::vector<float> DraftHead::Hidden(std::vector<float> states) {
  if (layers_.empty()) return states;
  std::vector<float> hidden;
  const size_t rows = states.size() / state_width_;
  hidden.reserve(rows * width_);
  for (size_t first = 0; first < rows; first += kEncodedRows) {
    const size_t count = std::min(kEncodedRows, rows - first);
    llama_batch raw{};
    raw.n_tokens = static_cast<int32_t>(count);
    raw.embd = states.data() + first * state_width_;
    const ComputeTurns::Step turn([] { return false; });
    if (!turn.has_turn() || Api().llama_encode(context_, raw) != 0) throw std::bad_alloc();
    for (size_t i = 0; i < count; ++i) {
      const float* row = Api().get_embeddings_nextn_ith(context_, static_cast<int32_t>(i));
      if (!row) throw std::bad_alloc();
      hidden.insert(hidden.end(), row, row + width_);
    }
  }
  return hidden;
}

void DraftHead::Take(int32_t id, const StepInput& input, size_t begin, size_t end, const ReadState& read_state) {
  Sequence& sequence = sequences_[static_cast<size_t>(id)];
  const bool is_sharing = kind_ == HeadKind::kSharing;
  if (is_sharing) begin = std::max(begin, end - std::min(end, static_cast<size_t>(kKeptRows)));
  const int32_t first = input.positions[begin];
  if (first < sequence.end()) Remove(id, first);
  if (first > sequence.end()) {  // the sequence was not followed: its cache begins here
    Remove(id, 0);
    sequence.next = sequence.first = first;
  }
  for (size_t at = begin; at < end; ++at) {
    sequence.tokens.push_back(input.tokens[at]);
    sequence.states.resize(sequence.states.size() + state_width_);
    sequence.is_known.push_back(read_state(at, &sequence.states[sequence.states.size() - state_width_]));
  }
  if (!is_sharing) return;
  sequence.next = sequence.end();
  Trim(sequence);
}

void DraftHead::Trim(Sequence& sequence) const {
  const auto dropped = static_cast<std::ptrdiff_t>(sequence.next - kKeptRows - sequence.first);
  if (dropped < kKeptRows) return;  // rows are dropped in batches, because the rest is moved
  sequence.first += static_cast<int32_t>(dropped);
  sequence.tokens.erase(sequence.tokens.begin(), sequence.tokens.begin() + dropped);
  sequence.is_known.erase(sequence.is_known.begin(), sequence.is_known.begin() + dropped);
  sequence.states.erase(sequence.states.begin(), sequence.states.begin() + dropped * static_cast<std::ptrdiff_t>(state_width_));
}

std::vector<DraftHead::Batch> DraftHead::TakeWaiting(const std::vector<int32_t>& ids) {
  std::vector<float> states;
  for (int32_t id : ids) {
    const Sequence& sequence = sequences_[static_cast<size_t>(id)];
    for (int32_t position = sequence.next - 1; position < sequence.end(); ++position) {
      states.resize(states.size() + state_width_, 0.0f);
      if (!sequence.Knows(position)) continue;
      const auto row = static_cast<size_t>(position - sequence.first);
      std::copy_n(&sequence.states[row * state_width_], state_width_, &states[states.size() - state_width_]);
    }
  }
  const std::vector<float> hidden = Hidden(std::move(states));
  std::vector<Batch> waiting;
  const float* before = hidden.data();
  for (int32_t id : ids) {
    Sequence& sequence = sequences_[static_cast<size_t>(id)];
    Batch batch;
    for (int32_t position = sequence.next; position < sequence.end(); ++position, before += width_) {
      // A separate file was not trained with a token that has no state before it.
      sequence.has_cells = sequence.has_cells || kind_ == HeadKind::kOwn || sequence.Knows(position - 1);
      if (sequence.has_cells) Add(batch, sequence.tokens[static_cast<size_t>(position - sequence.first)], position, id, before, false);
    }
    batch.hidden.insert(batch.hidden.end(), before, before + width_);
    before += width_;
    waiting.push_back(std::move(batch));
    sequence.next = sequence.end();
    Trim(sequence);
  }
  return waiting;
}

DraftWork DraftHead::Follow(const StepInput& input, const ReadState& read_state) {
  DraftWork work;
  input_ = &input;
  if (!context_ || input.followed.empty()) return work;
  const auto start = DraftWork::Clock::now();
  try {
    std::vector<int32_t> full;
    for (size_t begin = 0, end; begin < input.tokens.size(); begin = end) {
      const int32_t id = input.sequences[begin];
      for (end = begin + 1; end < input.tokens.size() && input.sequences[end] == id; ++end)
        if (input.positions[end] != input.positions[end - 1] + 1) break;
      if (std::find(input.followed.begin(), input.followed.end(), id) == input.followed.end()) continue;
      Take(id, input, begin, end, read_state);
      const Sequence& sequence = sequences_[static_cast<size_t>(id)];
      if (sequence.end() - sequence.next >= kMostWaiting) full.push_back(id);
    }
    Compute(TakeWaiting(full), &work);
    work.sequences = static_cast<int32_t>(full.size());
  } catch (...) {
    Release();
  }
  work.StopClock(start);
  return work;
}

std::vector<DraftHead::Job> DraftHead::JobsOf(std::vector<ModelDraft>& drafts, DraftWork* work) {
  std::vector<Job> jobs;
  std::vector<int32_t> ids;
  size_t rows = 0;
  for (ModelDraft& draft : drafts) {
    const auto row = static_cast<size_t>(input_->sample_rows[draft.row]);
    const int32_t id = input_->sequences[row], position = input_->positions[row] + 1;
    const Sequence& sequence = sequences_[static_cast<size_t>(id)];
    // Forced tokens behind the sampled one are not computed yet.
    if (!sequence.Knows(position - 1) || draft.drafter->tokens().size() != static_cast<size_t>(position) + 1) continue;
    Remove(id, position);  // removes wrong drafts
    if (kind_ == HeadKind::kSharing) cache_.Remove(id, position, -1);  // which the next step would remove
    rows += 1 + static_cast<size_t>(sequence.end() - sequence.next);
    const size_t limit = most_drafts() > 0 ? std::min(draft.limit, static_cast<size_t>(most_drafts())) : draft.limit;
    ids.push_back(id);
    jobs.push_back({DraftJob(draft), limit, id, position});
  }
  std::vector<Batch> waiting = TakeWaiting(ids);
  // Waiting tokens are computed with the first drafts, unless each layer of a chain must compute them, or they exceed a batch, or the head
  // is EAGLE-3, for which the engine writes logits for all rows of a pass or for none.
  const bool is_apart = kind_ != HeadKind::kOwn || layers_in_chain_ > 1 || rows > batch_tokens_;
  if (is_apart) Compute(waiting, work);
  for (size_t i = 0; i < jobs.size(); ++i) {
    Job& job = jobs[i];
    std::vector<float>& hidden = waiting[i].hidden;
    const std::vector<float> last(hidden.end() - static_cast<std::ptrdiff_t>(width_), hidden.end());
    hidden.resize(hidden.size() - width_);
    if (!is_apart) job.rows = std::move(waiting[i]);
    Add(job.rows, job.draft->drafter->tokens().back(), job.position, job.sequence, last.data(), false);
  }
  return jobs;
}

bool DraftHead::DraftOnce(std::vector<Job*>& active, DraftWork* work) {
  Batch batch;
  RowsInput input;
  std::vector<int32_t> last;  // (active) rows of the batch
  for (Job* job : active) {
    const size_t rows = job->rows.tokens.size();
    if (layers_in_chain_ > 1) {  // the layer of this draft must compute all rows
      Api().llama_memory_seq_rm(Api().llama_get_memory(context_), job->sequence, job->position, -1);
      job->computed = 0;
    }
    for (; job->computed < rows; ++job->computed) AddRow(batch, job->rows, job->computed, job->computed + 1 == rows);
    last.push_back(static_cast<int32_t>(batch.tokens.size()) - 1);
    input.samplers.push_back(job->sampler);
    input.matchers.push_back(job->matcher);
  }
  if (!Decode(batch)) return false;
  work->passes += 1;
  work->tokens += static_cast<int32_t>(batch.tokens.size());
  std::vector<const float*> logits;
  for (int32_t row : last) logits.push_back(Api().llama_get_logits_ith(context_, row));
  RowsOutput output;
  ConstraintRows constraints = rows_.Constrain(input);
  rows_.Run(input, logits, constraints, &output);
  std::vector<Job*> left;
  for (size_t i = 0; i < active.size(); ++i) {
    Job& job = *active[i];
    const RowResult& sample = output.samples[i];
    if (!job.Take(sample)) continue;
    const float* hidden = Api().get_embeddings_nextn_ith(context_, last[i]);
    if (job.draft->drafts->size() >= job.limit || sample.is_final || !sample.forced.empty() || !hidden) continue;
    const int32_t position = kind_ == HeadKind::kSharing ? job.position : job.rows.positions.back() + 1;
    Add(job.rows, sample.token, position, job.sequence, hidden, false);
    left.push_back(&job);
  }
  active = std::move(left);
  return true;
}

DraftWork DraftHead::Draft(std::vector<ModelDraft>& drafts) {
  DraftWork work;
  if (!context_ || !input_) return work;
  const auto start = DraftWork::Clock::now();
  std::vector<Job> jobs;
  std::vector<Job*> active;
  try {
    jobs = JobsOf(drafts, &work);
    for (Job& job : jobs) active.push_back(&job);
    for (int32_t layer = 0; !active.empty(); ++layer) {
      if (layers_in_chain_ > 1) Api().set_nextn_layer_offset(context_, layer);
      if (!DraftOnce(active, &work)) break;
    }
    for (Job& job : jobs) Api().llama_memory_seq_rm(Api().llama_get_memory(context_), job.sequence, job.position, -1);
  } catch (...) {
    Release();
  }
  for (Job& job : jobs) work.sequences += job.End();
  work.StopClock(start);
  return work;
}

}  // namespace onpolicy
