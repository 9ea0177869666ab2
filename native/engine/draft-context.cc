#include "engine/draft-context.h"

#include <algorithm>

namespace onpolicy {
namespace {

// Below this number of tokens, computing them again is preferred to copying them from another sequence.
constexpr size_t kWorthACopy = 16;

size_t CommonPrefix(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  const size_t most = std::min(a.size(), b.size());
  return static_cast<size_t>(std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(most), b.begin()).first - a.begin());
}

void AddRemove(size_t slot, size_t from, std::vector<int32_t>* edits) {
  const auto sequence = static_cast<int32_t>(slot);
  edits->insert(edits->end(), {kMemoryRemove, sequence, 0, static_cast<int32_t>(from), -1});
}

}  // namespace

DraftContext::DraftContext(std::shared_ptr<Context> context, const ContextOptions& options, uint32_t longest)
    : context_(std::move(context)), batch_tokens_(options.batch_tokens), longest_(longest), slots_(options.max_sequences) {}

void DraftContext::Close() {
  std::lock_guard<std::mutex> lock(mutex_);
  context_.reset();
}

void DraftContext::Forget(Slot& slot, std::vector<int32_t>* edits) {
  slot.tokens.clear();
  slot.owner.reset();
  AddRemove(static_cast<size_t>(&slot - slots_.data()), 0, edits);
}

bool DraftContext::MakeRoom(std::vector<int32_t>* edits) {
  Slot* oldest = nullptr;
  for (Slot& slot : slots_)
    if (slot.used < calls_ && !slot.tokens.empty() && (!oldest || slot.used < oldest->used)) oldest = &slot;
  if (oldest) Forget(*oldest, edits);
  return oldest != nullptr;
}

int32_t DraftContext::FindSlot(const std::shared_ptr<Drafter>& drafter) {
  for (size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].owner.lock() == drafter) return static_cast<int32_t>(i);
  // Prefers free slots, then the least recently used one.
  const auto order = [](const Slot& slot) { return std::pair(!slot.owner.expired(), slot.used); };
  int32_t chosen = -1;
  for (size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].used < calls_ && (chosen < 0 || order(slots_[i]) < order(slots_[static_cast<size_t>(chosen)])))
      chosen = static_cast<int32_t>(i);
  return chosen;
}

void DraftContext::Adopt(Slot& slot, const std::shared_ptr<Drafter>& drafter, std::vector<int32_t>* edits) {
  const std::vector<int32_t>& text = drafter->tokens();
  if (slot.owner.lock() != drafter && slot.key != drafter->key()) Forget(slot, edits);
  slot.owner = drafter;
  slot.key = drafter->key();
  size_t shared = CommonPrefix(slot.tokens, text) + kWorthACopy;
  if (shared >= text.size()) return;
  const Slot* source = nullptr;
  for (const Slot& other : slots_) {
    const size_t common = other.key == slot.key ? CommonPrefix(other.tokens, text) : 0;
    if (common <= shared) continue;
    shared = common;
    source = &other;
  }
  if (!source) return;
  const auto from = static_cast<int32_t>(source - slots_.data()), to = static_cast<int32_t>(&slot - slots_.data());
  AddRemove(static_cast<size_t>(to), 0, edits);
  edits->insert(edits->end(), {kMemoryCopy, from, to, 0, static_cast<int32_t>(shared)});
  slot.tokens.assign(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(shared));
}

bool DraftContext::IsComing(const std::vector<Job>& jobs, const Drafter& drafter, size_t known) {
  return std::any_of(jobs.begin(), jobs.end(), [&](const Job& job) {
    return job.draft->drafter->key() == drafter.key() &&
           CommonPrefix(job.draft->drafter->tokens(), drafter.tokens()) > known + kWorthACopy;
  });
}

std::vector<DraftContext::Job> DraftContext::Begin(std::vector<ModelDraft>& sequences, std::vector<int32_t>* edits) {
  std::vector<Job> jobs;
  for (ModelDraft& sequence : sequences) {
    const std::vector<int32_t>& text = sequence.drafter->tokens();
    if (text.size() + sequence.limit > longest_) continue;
    const int32_t at = FindSlot(sequence.drafter);
    if (at < 0) continue;
    Slot& slot = slots_[static_cast<size_t>(at)];
    slot.used = calls_;
    Adopt(slot, sequence.drafter, edits);
    const size_t known = std::min(CommonPrefix(slot.tokens, text), text.size() - 1);
    if (known < slot.tokens.size()) AddRemove(static_cast<size_t>(at), known, edits);
    slot.tokens.resize(known);
    if (text.size() - known > kWorthACopy && IsComing(jobs, *sequence.drafter, known)) continue;
    jobs.push_back({DraftJob(sequence), static_cast<size_t>(at), {text.begin() + static_cast<std::ptrdiff_t>(known), text.end()}});
  }
  // Takes the whole of each sequence that fits into the pass. Of the others it computes the beginning, so that they have drafts later.
  std::sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) { return a.missing.size() < b.missing.size(); });
  size_t left = batch_tokens_;
  for (Job& job : jobs) {
    if (job.missing.size() > left) {
      job.missing.resize(left);
      job.draft->limit = 0;
    }
    left -= job.missing.size();
  }
  return jobs;
}

bool DraftContext::Pass(std::vector<Job>& jobs, std::vector<int32_t>* edits, DraftWork* work) {
  StepInput input;
  std::vector<Job*> sampled;
  for (Job& job : jobs) {
    const Slot& slot = slots_[job.slot];
    for (size_t i = 0; i < job.missing.size(); ++i) {
      input.tokens.push_back(job.missing[i]);
      input.positions.push_back(static_cast<int32_t>(slot.tokens.size() + i));
      input.sequences.push_back(static_cast<int32_t>(job.slot));
    }
    if (job.missing.empty() || job.draft->limit == 0) continue;
    input.sample_rows.push_back(static_cast<int32_t>(input.tokens.size()) - 1);
    input.samplers.push_back(job.sampler);
    input.matchers.push_back(job.matcher);
    sampled.push_back(&job);
  }
  if (input.tokens.empty()) return false;
  StepOutput output;
  for (;;) {
    input.memory_edits.swap(*edits);
    edits->clear();
    try {
      output = context_->Step(input);
      break;
    } catch (const EngineFailed&) {  // Draft abandons the context
      throw;
    } catch (const Failure& failure) {
      if (failure.status().code == "KV_FULL" && MakeRoom(edits)) continue;
      for (Job& job : jobs) Forget(slots_[job.slot], edits);
      StepInput only_edits;
      only_edits.memory_edits.swap(*edits);
      try {
        if (failure.status().code == "BACKEND_FAILED") throw;
        context_->Step(only_edits);
      } catch (const EngineFailed&) {
        throw;
      } catch (const Failure&) {
        context_.reset();
      }
      return false;
    }
  }
  work->passes += 1;
  work->tokens += static_cast<int32_t>(input.tokens.size());
  for (Job& job : jobs) {
    std::vector<int32_t>& tokens = slots_[job.slot].tokens;
    tokens.insert(tokens.end(), job.missing.begin(), job.missing.end());
    job.missing.clear();
  }
  for (size_t i = 0; i < sampled.size(); ++i) {
    Job& job = *sampled[i];
    const RowResult& row = output.samples[i];
    if (!job.Take(row) || job.draft->drafts->size() >= job.draft->limit || row.is_final) continue;
    job.missing.push_back(row.token);
    job.missing.insert(job.missing.end(), row.forced.begin(), row.forced.end());
  }
  return true;
}

DraftWork DraftContext::Draft(std::vector<ModelDraft>& sequences) {
  std::lock_guard<std::mutex> lock(mutex_);
  DraftWork work;
  if (!context_) return work;
  const auto start = DraftWork::Clock::now();
  ++calls_;
  std::vector<int32_t> edits;
  std::vector<Job> jobs = Begin(sequences, &edits);
  try {
    while (Pass(jobs, &edits, &work)) {
    }
  } catch (...) {  // the device failed: nothing is drafted from now on
    context_->Abandon();
    context_.reset();
  }
  for (Job& job : jobs) work.sequences += job.End();
  work.StopClock(start);
  return work;
}

}  // namespace onpolicy
