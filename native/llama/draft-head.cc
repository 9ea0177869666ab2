#include "llama/draft-head.h"

#include <algorithm>
#include <chrono>

#include "llama/asserts.h"
#include "llama/compute-turns.h"
#include "llama/error-log.h"

namespace onpolicy {
namespace {

// Hidden states that a sequence keeps: drafts of the next step may be wrong from any of these on.
constexpr size_t kKeptRows = 64;

using Clock = std::chrono::steady_clock;

double MsSince(Clock::time_point start) { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); }

}  // namespace

DraftHead::DraftHead(const Model& model, llama_context* target, int32_t sampled_vocab, int32_t threads)
    : target_(target),
      width_(static_cast<size_t>(Api().llama_model_n_embd_out(model.get()))),
      rows_(sampled_vocab, threads) {}

std::unique_ptr<DraftHead> DraftHead::Create(const Model& model, llama_context* target, llama_context_params params,
                                             ThreadPool& pool, int32_t sampled_vocab, int32_t threads) {
  const Library& api = Api();
  if (!api.set_embeddings_nextn || !api.get_embeddings_nextn_ith || api.llama_model_n_layer_nextn(model.get()) == 0) return nullptr;
  params.ctx_type = LLAMA_CONTEXT_TYPE_MTP;
  params.ctx_other = target;
  params.n_rs_seq = 0;
  params.abort_callback = nullptr;
  std::unique_ptr<DraftHead> head(new DraftHead(model, target, sampled_vocab, threads));
  ErrorLog log;
  head->context_ = log.Run([&] { return api.llama_init_from_model(model.get(), params); });
  if (!head->context_) {
    LogLine(GGML_LOG_LEVEL_WARN, ("drafts: none by the model's own head, as its context could not be made: " + log.Text() + "\n").c_str());
    return nullptr;
  }
  api.set_embeddings_nextn(head->context_, true, true);
  api.llama_attach_threadpool(head->context_, pool.get(), pool.get());
  head->batch_tokens_ = params.n_batch;
  head->sequences_.resize(params.n_seq_max);
  return head;
}

DraftHead::~DraftHead() {
  if (context_) Api().llama_free(context_);
}

void DraftHead::GiveUp() {
  if (context_) Api().llama_free(context_);
  context_ = nullptr;
  Api().set_embeddings_nextn(target_, false, false);
}

void DraftHead::Prepare(const std::vector<int8_t>& wants_logits) const {
  if (!context_) return;
  // Rows of all tokens lie in the order in which the engine computed them, those of outputs in that of the batch.
  const bool is_masked = std::all_of(wants_logits.begin(), wants_logits.end(), [](int8_t wants) { return wants != 0; });
  Api().set_embeddings_nextn(target_, true, is_masked);
}

void DraftHead::Remove(int32_t sequence, int32_t from) {
  Api().llama_memory_seq_rm(Api().llama_get_memory(context_), sequence, from, -1);
  Sequence& cut = sequences_[static_cast<size_t>(sequence)];
  cut.next = std::min(cut.next, from);
  const auto rows = static_cast<size_t>(std::max(0, from - cut.first));
  if (cut.hidden.size() > rows * width_) cut.hidden.resize(rows * width_);
}

void DraftHead::Edit(const int32_t* edit) {
  if (!context_ || edit[0] == kMemoryForget) return;
  if (edit[0] != kMemoryCopy) {  // of a checkpoint the cells behind it are removed
    if (edit[4] < 0) Remove(edit[1], std::max(edit[3], 0));
    else Remove(edit[1], 0);  // a hole: the rest is of no use
    return;
  }
  const Sequence& from = sequences_[static_cast<size_t>(edit[1])];
  Remove(edit[2], 0);
  Api().llama_memory_seq_cp(Api().llama_get_memory(context_), edit[1], edit[2], -1, -1);
  Sequence& to = sequences_[static_cast<size_t>(edit[2])];
  to = from;
  if (edit[4] >= 0) Remove(edit[2], edit[4]);
}

const float* DraftHead::HiddenAt(const Sequence& sequence, int32_t position, size_t width) {
  const auto rows = static_cast<int32_t>(sequence.hidden.size() / width);
  if (position < sequence.first || position >= sequence.first + rows) return nullptr;
  return sequence.hidden.data() + static_cast<size_t>(position - sequence.first) * width;
}

void DraftHead::Add(Batch& batch, int32_t token, int32_t position, int32_t sequence, const float* hidden, bool wants_logits) const {
  batch.tokens.push_back(token);
  batch.positions.push_back(position);
  batch.sequences.push_back(sequence);
  batch.wants_logits.push_back(wants_logits);
  if (hidden) batch.hidden.insert(batch.hidden.end(), hidden, hidden + width_);
  else batch.hidden.resize(batch.hidden.size() + width_, 0.0f);
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
  const CatchFatal catching;
  return turn.has_turn() && Api().llama_decode(context_, raw) == 0;
}

DraftWork DraftHead::Follow(const StepInput& input, const HiddenOf& hidden_of) {
  DraftWork work;
  input_ = &input;
  if (!context_ || input.followed.empty()) return work;
  const auto start = Clock::now();
  Batch batch;
  try {
    for (size_t i = 0; i < input.tokens.size();) {
      const int32_t id = input.sequences[i];
      size_t end = i + 1;
      while (end < input.tokens.size() && input.sequences[end] == id && input.positions[end] == input.positions[end - 1] + 1) ++end;
      if (std::find(input.followed.begin(), input.followed.end(), id) == input.followed.end()) {
        i = end;
        continue;
      }
      Sequence& sequence = sequences_[static_cast<size_t>(id)];
      const int32_t first = input.positions[i];
      if (sequence.next > first) Remove(id, first);
      else if (sequence.next < first) Remove(id, 0);  // it was not followed: its cache begins here
      const size_t kept_from = std::max(i, end - std::min(end, kKeptRows));
      std::vector<float> kept;
      std::vector<float> carried;  // the rows that it points into are replaced
      if (const float* row = HiddenAt(sequence, first - 1, width_)) carried.assign(row, row + width_);
      const float* before = carried.empty() ? nullptr : carried.data();
      for (size_t at = i; at < end; ++at) {
        Add(batch, input.tokens[at], input.positions[at], id, before, false);
        before = hidden_of(at);
        if (at >= kept_from && before) kept.insert(kept.end(), before, before + width_);
        if (batch.tokens.size() < batch_tokens_) continue;
        if (!Decode(batch)) throw std::bad_alloc();
        batch = {};
      }
      sequence.next = input.positions[end - 1] + 1;
      sequence.first = sequence.next - static_cast<int32_t>(kept.size() / width_);
      sequence.hidden = std::move(kept);
      work.sequences += 1;
      work.tokens += static_cast<int32_t>(end - i);
      i = end;
    }
    if (!batch.tokens.empty() && !Decode(batch)) throw std::bad_alloc();
    work.passes = work.sequences > 0 ? 1 : 0;
  } catch (...) {
    GiveUp();
  }
  work.ms = MsSince(start);
  return work;
}

DraftWork DraftHead::Draft(std::vector<ModelDraft>& drafts) {
  DraftWork work;
  if (!context_ || !input_) return work;
  struct Job {
    ModelDraft* draft;
    int32_t sequence, position, token;
    std::vector<float> hidden;
    std::shared_ptr<Sampler> sampler;
    std::shared_ptr<TokenMatcher> matcher;  // does not own
    size_t accepted = 0;                    // tokens that the matcher has to give back
  };
  const auto start = Clock::now();
  std::vector<Job> jobs;
  for (ModelDraft& draft : drafts) {
    const auto row = static_cast<size_t>(input_->sample_rows[draft.row]);
    const int32_t id = input_->sequences[row], position = input_->positions[row] + 1;
    const Sequence& sequence = sequences_[static_cast<size_t>(id)];
    const std::vector<int32_t>& text = draft.drafter->tokens();
    const float* hidden = HiddenAt(sequence, position - 1, width_);
    // Forced tokens behind the sampled one are not computed yet.
    if (!hidden || sequence.next < position || text.size() != static_cast<size_t>(position) + 1) continue;
    Job job{&draft, id, position, text.back(), {hidden, hidden + width_}, std::make_shared<Sampler>(*draft.sampler), nullptr};
    if (draft.matcher) job.matcher = {std::shared_ptr<void>(), draft.matcher};
    Remove(id, position);  // drafts that were wrong
    jobs.push_back(std::move(job));
  }
  std::vector<Job*> active;
  for (Job& job : jobs) active.push_back(&job);
  try {
    while (!active.empty()) {
      Batch batch;
      RowsInput input;
      for (Job* job : active) {
        Add(batch, job->token, job->position++, job->sequence, job->hidden.data(), true);
        input.samplers.push_back(job->sampler);
        input.matchers.push_back(job->matcher);
      }
      if (!Decode(batch)) break;
      work.passes += 1;
      work.tokens += static_cast<int32_t>(active.size());
      std::vector<const float*> logits;
      for (size_t i = 0; i < active.size(); ++i) logits.push_back(Api().llama_get_logits_ith(context_, static_cast<int32_t>(i)));
      RowsOutput output;
      ConstraintRows constraints = rows_.Constrain(input);
      rows_.Run(input, logits, constraints, &output);
      std::vector<Job*> left;
      for (size_t i = 0; i < active.size(); ++i) {
        Job& job = *active[i];
        const RowResult& sample = output.samples[i];
        if (sample.status != RowStatus::kSampled || sample.token < 0) continue;
        job.accepted += 1 + sample.forced.size();
        std::vector<int32_t>& found = *job.draft->drafts;
        found.push_back(sample.token);
        found.insert(found.end(), sample.forced.begin(), sample.forced.end());
        const float* hidden = Api().get_embeddings_nextn_ith(context_, static_cast<int32_t>(i));
        if (found.size() >= job.draft->limit || sample.is_final || !sample.forced.empty() || !hidden) continue;
        job.token = sample.token;
        job.hidden.assign(hidden, hidden + width_);
        left.push_back(&job);
      }
      active = std::move(left);
    }
    for (Job& job : jobs) Api().llama_memory_seq_rm(Api().llama_get_memory(context_), job.sequence, sequences_[static_cast<size_t>(job.sequence)].next, -1);
  } catch (...) {
    GiveUp();
  }
  for (Job& job : jobs) {
    if (job.matcher) job.matcher->Rollback(job.accepted);
    std::vector<int32_t>& found = *job.draft->drafts;
    if (found.size() > job.draft->limit) found.resize(job.draft->limit);
    if (!found.empty()) work.sequences += 1;
  }
  work.ms = MsSince(start);
  return work;
}

}  // namespace onpolicy
