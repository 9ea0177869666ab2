#include "engine/context.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "base/compute-turns.h"
#include "base/scoped-value.h"
#include "base/threads.h"
#include "engine-assumptions/attention/hook.h"

namespace onpolicy {

DraftTarget Context::AsTarget() { return {*model_, context_, params_, *pool_, cache_, rows_.vocab_size(), threads_}; }

void Context::SetHead(std::unique_ptr<DraftHead> head) {
  head_ = std::move(head);
  rows_.SetHead(head_.get());
  kept_.ForgetStates();
}

void Context::AttachHead(std::shared_ptr<Model> model, std::vector<uint32_t> layers) {
  EndAhead();
  SetHead(layers.empty() ? DraftHead::CreateSharing(AsTarget(), std::move(model))
                         : DraftHead::CreateEagle(AsTarget(), std::move(model), std::move(layers)));
}

void Context::DetachHead() {
  EndAhead();
  SetHead(nullptr);
}

void Context::Abort() {
  abort_ = true;
  ComputeTurns::Shared().Wake();
}

void Context::AbortAhead() {
  if (is_recurrent_) return;
  abort_ahead_ = true;
  ComputeTurns::Shared().Wake();
}

Context::~Context() {
  if (is_abandoned_) {
    head_.release();
    pool_.release();  // a step may still use it
    return;
  }
  head_.reset();
  if (context_) Api().llama_free(context_);
  adapters_.FreeAll();
}

void Context::Abandon() {
  if (!model_->use_gpu()) return;
  is_abandoned_ = true;
  model_->Abandon();
}

void Context::EditMemory(const std::vector<int32_t>& edits, const std::vector<int32_t>& except) {
  ThreadFailure failure;
  for (size_t i = 0; i + 5 <= edits.size(); i += 5)
    if (std::find(except.begin(), except.end(), edits[i + 1]) == except.end())
      failure.Keep([&] { EditSequence(&edits[i]); });
  failure.Rethrow();
}

void Context::EditSequence(const int32_t* edit) {
  if (head_) head_->Edit(edit);
  if (edit[0] == kMemoryRemove || edit[0] == kMemoryRestore) kept_.Drop(edit[1], edit[3]);
  cache_.Edit(edit);
}

void Context::UseThreads(int count) {
  Api().llama_set_n_threads(context_, count, count);
  if (head_) head_->UseThreads(count);
}

void Context::DecodeBatch(llama_batch batch, const int32_t* sequences, bool records_experts) {
  const auto count = static_cast<size_t>(batch.n_tokens);
  sequence_counts_.assign(count, 1);
  sequence_pointers_.resize(count);
  for (size_t i = 0; i < count; ++i) sequence_pointers_[i] = const_cast<int32_t*>(&sequences[i]);
  batch.n_seq_id = sequence_counts_.data();
  batch.seq_id = sequence_pointers_.data();
  batch.logits = wants_logits_.data();
  if (head_) head_->Prepare(wants_logits_);
  attention::CellPositions* const positions = is_kv_unified_ ? &positions_ : nullptr;
  attention::NodeCounts counts;
  const bool has_adapter = adapters_.is_used() && !model_->use_gpu();  // this addon sees no nodes of a GPU
  const bool is_counted = first_pass_.IsWanted(has_adapter);
  const attention::Scope scope(model_->has_own_kernels(), positions, is_counted ? &counts : nullptr);
  if (records_experts) record_.Begin();
  const int32_t result = Api().llama_decode(context_, batch);
  cache_.Pass(sequences, count);
  record_.Stop();
  if (is_counted && result == 0) {
    first_pass_.See(counts, positions, has_adapter);
    model_->SetAttention(first_pass_.attention());
  }
  if (result == 0 && records_experts) experts_ = record_.Take(context_, batch, sequences);
  if (result == 1) throw Failure("KV_FULL", "the KV cache has no room for this step");
  if (result == 2) throw Failure("ABORTED", "the step was aborted");
  if (result != 0) throw Failure("BACKEND_FAILED", "the engine failed to decode (code " + std::to_string(result) + ")");
}

void Context::DecodeTokens(const StepInput& input, const std::vector<int32_t>& rows) {
  wants_logits_.assign(input.tokens.size(), 0);
  for (int32_t row : rows) wants_logits_[static_cast<size_t>(row)] = 1;
  llama_batch batch{};
  batch.n_tokens = static_cast<int32_t>(input.tokens.size());
  batch.token = const_cast<int32_t*>(input.tokens.data());
  batch.pos = const_cast<int32_t*>(input.positions.data());
  DecodeBatch(batch, input.sequences.data(), input.records_experts);
}

void Context::DecodeMedia(const StepInput& input, const MediaRows& media, const std::vector<int32_t>& rows,
                          std::vector<int32_t>* places) {
  const auto count = static_cast<size_t>(media.count);
  wants_logits_.assign(count, 0);
  std::vector<size_t> wanted;
  for (int32_t row : rows) {
    const auto at = static_cast<size_t>(row - media.at);
    if (row < media.at || at >= count || wants_logits_[at]) continue;
    wants_logits_[at] = 1;
    wanted.push_back(at);
  }
  llama_batch batch{};
  batch.n_tokens = media.count;
  batch.embd = const_cast<float*>(media.rows->data()) +
               static_cast<size_t>(media.first) * static_cast<size_t>(model_->input_size());
  batch.pos = const_cast<int32_t*>(media.positions.empty() ? &input.positions[static_cast<size_t>(media.at)]
                                                           : media.positions.data());
  if (media.is_non_causal) Api().llama_set_causal_attn(context_, false);
  ThreadFailure failure;
  failure.Keep([&] { DecodeBatch(batch, &input.sequences[static_cast<size_t>(media.at)], /*records_experts=*/false); });
  if (media.is_non_causal) Api().llama_set_causal_attn(context_, true);
  failure.Rethrow();
  for (size_t at : wanted) {  // the next decode overwrites them
    const float* logits = LogitsAt(static_cast<int32_t>(at));
    outside_.push_back({{logits, logits + vocab_size()}, {}, {}});
    (*places)[static_cast<size_t>(media.at) + at] = -static_cast<int32_t>(outside_.size());
  }
}

void Context::DecodeMixed(const StepInput& input, const std::vector<int32_t>& rows, std::vector<int32_t>* places) {
  StepInput text;
  text.records_experts = input.records_experts;
  std::vector<int32_t> text_rows;
  size_t next = 0;  // index of the next medium
  for (size_t i = 0; i < input.tokens.size(); ++i) {
    if ((*places)[i] != kNoPlace) continue;
    if (next < input.media.size() && static_cast<size_t>(input.media[next].at) == i) {
      const MediaRows& media = input.media[next++];
      DecodeMedia(input, media, rows, places);
      i += static_cast<size_t>(media.count) - 1;
      continue;
    }
    (*places)[i] = static_cast<int32_t>(text.tokens.size());
    text.tokens.push_back(input.tokens[i]);
    text.positions.push_back(input.positions[i]);
    text.sequences.push_back(input.sequences[i]);
  }
  for (int32_t row : rows) {
    const int32_t place = (*places)[static_cast<size_t>(row)];
    if (place >= 0) text_rows.push_back(place);
  }
  if (!text.tokens.empty()) DecodeTokens(text, text_rows);
}

std::vector<int32_t> Context::Decode(const StepInput& input) {
  std::vector<int32_t> rows = input.sample_rows;
  for (size_t i = 0; i < input.score_rows.size(); i += 3) rows.push_back(input.score_rows[i]);
  outside_.clear();
  std::vector<int32_t> places(input.tokens.size(), kNoPlace);
  kept_.Take(input, &places, &outside_);
  const size_t kept = outside_.size();
  if (kept == input.tokens.size()) return places;
  const ComputeTurns::Step turn(is_aborted_);
  if (!turn.has_turn()) throw Failure("ABORTED", "the step was aborted");
  const ThreadBudget::Share share(share_);
  UseThreads(share.threads());
  if (!input.media.empty() || kept > 0) {
    DecodeMixed(input, rows, &places);
  } else {
    std::iota(places.begin(), places.end(), 0);
    DecodeTokens(input, rows);
  }
  return places;
}

const float* Context::LogitsAt(int32_t place) {
  if (place < 0) return OutsideAt(place).logits.data();
  if (const float* logits = Api().llama_get_logits_ith(context_, place)) return logits;
  throw Failure("BACKEND_FAILED", "the engine returned no logits for a row");
}

void Context::Pad(std::vector<const float*>* rows) {
  padded_.resize(std::max(padded_.size(), rows->size()));
  for (size_t i = 0; i < rows->size(); ++i) {
    padded_[i].assign(static_cast<size_t>(rows_.vocab_size()), -std::numeric_limits<float>::infinity());
    std::copy_n((*rows)[i], vocab_size(), padded_[i].begin());
    (*rows)[i] = padded_[i].data();
  }
}

bool Context::StateAt(int32_t place, float* state) const {
  if (place == kNoPlace) return false;
  if (place >= 0) return head_->StateAt(place, state);
  const std::vector<float>& known = OutsideAt(place).state;
  std::copy(known.begin(), known.end(), state);
  return !known.empty();
}

RoutedExperts Context::ExpertsOf(const std::vector<int32_t>& places) const {
  RoutedExperts experts{experts_.layers, experts_.used, {}};
  if (experts_.ids.empty()) return experts;
  const std::vector<uint16_t> unknown(experts.width(), kNoExpert);
  for (int32_t place : places) {
    const uint16_t* known = unknown.data();
    if (place < 0 && !OutsideAt(place).experts.empty()) known = OutsideAt(place).experts.data();
    if (place >= 0 && place != kNoPlace) known = experts_.of(static_cast<size_t>(place));
    experts.ids.insert(experts.ids.end(), known, known + experts.width());
  }
  return experts;
}

void Context::RunAhead() {
  if (next_.empty() || is_next_computed_ || abort_ahead_) return;
  try {
    ComputeAhead();
    is_next_computed_ = true;
  } catch (const EngineFailed&) {  // the caller abandons the context
    throw;
  } catch (const Failure&) {  // the step that asks for it fails again and reports the error
  }
}

void Context::ComputeAhead() {
  const grammar::ScopedValue must_finish(must_finish_, is_recurrent_);
  EditMemory(next_.input().memory_edits);
  Decode(next_.input());
}

void Context::KeepAhead() {
  const StepInput& next = next_.input();
  try {
    if (!next_.empty() && !is_next_computed_) ComputeAhead();
  } catch (const EngineFailed&) {  // the caller abandons the context
    throw;
  } catch (const Failure& failure) {
    throw Failure("BACKEND_FAILED", "a step that was to be computed ahead has failed: " + failure.status().message);
  }
  for (size_t i = 0; i < next.tokens.size(); ++i) {
    const float* logits = LogitsAt(static_cast<int32_t>(i));
    std::vector<float> state(head_ ? head_->state_width() : 0);
    if (head_ && !head_->StateAt(static_cast<int32_t>(i), state.data())) state.clear();
    std::vector<uint16_t> experts;
    if (next.records_experts && !experts_.ids.empty()) experts.assign(experts_.of(i), experts_.of(i) + experts_.width());
    kept_.Add({next.sequences[i], next.positions[i], next.tokens[i], {{logits, logits + vocab_size()}, std::move(state), std::move(experts)}});
  }
  ForgetAhead();
}

void Context::ForgetAhead() {
  next_.Clear();
  is_next_computed_ = false;
}

void Context::EndAhead(const std::vector<int32_t>& used) {
  if (is_recurrent_) return KeepAhead();
  const StepInput& next = next_.input();
  for (size_t i = 0, at = 0; i < next.tokens.size(); ++i) {
    if (at < used.size() && static_cast<size_t>(used[at]) == i) ++at;
    else cache_.Remove(next.sequences[i], next.positions[i], -1);
  }
  ForgetAhead();
  abort_ahead_ = false;
}

std::vector<int32_t> Context::PassBehindAhead(const StepInput& input) {
  std::vector<int32_t> places;
  if (next_.IsAll(input)) {
    if (is_next_computed_) places = next_.PlacesOf(input);
    ForgetAhead();
  } else {
    KeepAhead();
  }
  EditMemory(input.memory_edits);
  if (!places.empty() || input.tokens.empty()) return places;
  adapters_.Use(input.adapter);
  return Decode(input);
}

std::vector<int32_t> Context::Pass(const StepInput& input) {
  if (is_recurrent_) return PassBehindAhead(input);
  std::vector<int32_t> places;
  if (is_next_computed_) places = next_.PlacesOf(input);
  EndAhead(places);
  const bool is_done = !places.empty();
  EditMemory(input.memory_edits, is_done ? input.sequences : std::vector<int32_t>{});  // edits of these sequences were made ahead
  if (is_done || input.tokens.empty()) return places;
  adapters_.Use(input.adapter);
  return Decode(input);
}

StepOutput Context::Step(const StepInput& input) {
  ConstraintRows constraints = rows_.Constrain(input);
  std::vector<int32_t> places;
  ThreadFailure failure;
  failure.Keep([&] { places = Pass(input); });
  abort_ = false;
  failure.Rethrow();
  // Read on this thread, because the first access may wait for the device and reorder the rows.
  std::vector<const float*> logits;
  const auto read = [&](int32_t row) {
    logits.push_back(LogitsAt(places[static_cast<size_t>(row)]));
  };
  for (int32_t row : input.sample_rows) read(row);
  for (size_t i = 0; i < input.score_rows.size(); i += 3) read(input.score_rows[i]);
  if (vocab_size() < rows_.vocab_size()) Pad(&logits);
  DraftWork followed;
  if (head_)
    followed = head_->Follow(input, [&](size_t i, float* state) { return StateAt(places[i], state); });
  StepOutput output;
  rows_.Run(input, logits, constraints, &output);
  output.draft_work += followed;
  if (input.records_experts) output.experts = ExpertsOf(places);
  if (input.may_run_ahead) next_.LayOut(input, output.samples);
  if (is_recurrent_ && (input.HasDrafts() || !next_.IsOneTokenEach(output.samples.size()))) next_.Clear();
  output.is_ahead = is_recurrent_ && !next_.empty();
  return output;
}

size_t Context::SaveCheckpoint(int32_t sequence, int32_t number) {
  EndAhead();
  return cache_.SaveCheckpoint(sequence, number);
}

std::vector<uint8_t> Context::SaveSequence(const std::vector<int32_t>& edits, int32_t sequence) {
  EndAhead();
  EditMemory(edits);
  return cache_.Save(sequence);
}

void Context::LoadSequence(const std::vector<int32_t>& edits, int32_t sequence, const std::vector<uint8_t>& state) {
  EndAhead();
  EditMemory(edits);
  cache_.Load(sequence, state);
}

}  // namespace onpolicy
