#include "engine/row-sampler.h"

#include <algorithm>
#include <map>

namespace onpolicy {

ConstraintRows RowSampler::Constrain(const RowsInput& input) {
  const auto& matchers = input.matchers;
  for (HookedRow& row : hooked_) row.raw = nullptr;
  const bool is_constrained =
      std::any_of(matchers.begin(), matchers.end(), [](const auto& matcher) { return matcher != nullptr; });
  if (is_constrained && !masks_) masks_ = std::make_unique<RowPool>(2);
  return ConstraintRows(matchers, input.drafted, is_constrained ? masks_.get() : nullptr);
}

void RowSampler::Run(const RowsInput& input, const std::vector<const float*>& logits, ConstraintRows& constraints,
                     RowsOutput* output) {
  const int samples = static_cast<int>(input.samplers.size());
  const int scores = static_cast<int>(input.score_rows.size() / 3);
  output->samples.resize(static_cast<size_t>(samples));
  output->scores.resize(static_cast<size_t>(scores));
  constraints.Wait();
  std::vector<int> hook_of(static_cast<size_t>(samples), -1);
  undrafted_.assign(static_cast<size_t>(samples), -1);
  hooked_.resize(input.hooked.size());
  for (size_t i = 0; i < input.hooked.size(); ++i) hook_of[static_cast<size_t>(input.hooked[i])] = static_cast<int>(i);
  rows_.Run(samples + scores, [&](int row, int worker) {
    const auto at = static_cast<size_t>(row);
    const float* values = logits[at];
    SamplerScratch& scratch = scratch_[static_cast<size_t>(worker)];
    if (row >= samples) {
      const size_t score = at - static_cast<size_t>(samples);
      const int32_t* asked = &input.score_rows[3 * score];
      ScoreRow(values, vocab_size_, asked[1], {.best = asked[2]}, scratch, output->scores[score]);
    } else if (hook_of[at] >= 0) {
      HookedRow& hooked = hooked_[static_cast<size_t>(hook_of[at])];
      hooked.sample = at;
      hooked.raw = values;
      hooked.sampler = input.samplers[at];
      hooked.prepared.resize(static_cast<size_t>(vocab_size_));
      hooked.matcher = input.matchers.empty() ? nullptr : input.matchers[at];
      hooked.sampler->Prepare(values, constraints.Mask(at), hooked.prepared.data());
      output->samples[at].Clear(RowStatus::kAwaitsEdit);
    } else if (!input.IsDraft(at)) {
      SampleSequence(input, at, logits, constraints, scratch, output->samples);
    }
  });
  DraftWithModels(input, output);
  if (!hooked_.empty()) samples_ = output->samples;
}

void RowSampler::DraftWithModels(const RowsInput& input, RowsOutput* output) {
  std::map<DraftModel*, std::vector<ModelDraft>> wanted;  // by model, which has one context; usually there is one model
  for (size_t first = 0; first < undrafted_.size(); ++first) {
    if (undrafted_[first] < 0) continue;
    const std::shared_ptr<Drafter>& drafter = input.drafters[first];
    wanted[ModelOf(*drafter)].push_back({drafter, input.samplers[first].get(),
                                        input.matchers.empty() ? nullptr : input.matchers[first].get(),
                                        output->samples[static_cast<size_t>(undrafted_[first])].drafts_to_check,
                                        &output->samples[static_cast<size_t>(undrafted_[first])].drafts, static_cast<size_t>(undrafted_[first])});
  }
  output->draft_work = {};
  for (auto& [model, sequences] : wanted) {
    output->draft_work += model->Draft(sequences);
    for (const ModelDraft& sequence : sequences) sequence.drafter->Propose(*sequence.drafts);
  }
}

void RowSampler::SampleSequence(const RowsInput& input, size_t first, const std::vector<const float*>& logits,
                                ConstraintRows& constraints, SamplerScratch& scratch, std::vector<RowResult>& results) {
  const size_t end = input.EndOfSequence(first);
  for (size_t row = first + 1; row < end; ++row) results[row].Clear(RowStatus::kPassedOver);
  Drafter* drafter = input.drafters.empty() ? nullptr : input.drafters[first].get();
  for (size_t row = first; row < end;) {
    RowResult& result = results[row];
    Sample(input, row, logits[row], constraints, scratch, result);
    if (result.status != RowStatus::kSampled || result.token < 0) return;
    size_t next = row + 1;
    bool is_as_drafted = true;
    size_t left = 1 + result.forced.size();  // tokens that the constraint has accepted and the drafter has not
    const auto take = [&](int32_t token) {
      if (drafter) drafter->Accept(token, constraints.StateBefore(first, left--));
      is_as_drafted = is_as_drafted && next < end && input.drafted[next] == token;
      if (is_as_drafted) ++next;
    };
    take(result.token);
    for (int32_t token : result.forced) take(token);
    if (result.is_final) return;
    if (!is_as_drafted) {
      if (drafter) {
        const size_t limit = result.drafts_to_check = input.DraftLimit(first, drafter->last_draft());
        drafter->Draft(std::max<size_t>(limit, 1), constraints.StateBefore(first, 0), &result.drafts);
        constraints.CutDrafts(first, &result.drafts);
        drafter->Propose(result.drafts);
        if (result.drafts.empty() && ModelOf(*drafter) && limit > 0) undrafted_[first] = static_cast<int>(row);
      }
      return;
    }
    row = next - 1;
  }
}

void RowSampler::Sample(const RowsInput& input, size_t sample, const float* values, ConstraintRows& constraints,
                        SamplerScratch& scratch, RowResult& result) {
  Sampler& sampler = *input.samplers[sample];
  if (sampler.plan().candidates > 0) {
    sampler.FindCandidates(values, constraints.Mask(sample), scratch, result);
    return;
  }
  sampler.Sample(values, constraints.Mask(sample), scratch, result);
  if (result.status == RowStatus::kSampled) {
    sampler.AcceptDrawn(result);
    result.is_final = constraints.Accept(sample, result.token);
    sampler.TakeForced([&](int32_t token) {
      result.forced.push_back(token);
      result.is_final = constraints.Accept(sample, token);
    });
    result.is_final = result.is_final || constraints.TakeForced(sample, sampler, &result.forced);
  } else if (result.status == RowStatus::kNoTokenAllowed && constraints.IsComplete(sample)) {
    result.status = RowStatus::kComplete;
  }
}

std::vector<RowResult> RowSampler::Finish(const std::vector<int32_t>& indices) {
  for (int32_t index : indices)
    if (!PreparedRow(static_cast<size_t>(index)))
      throw Failure("BACKEND_FAILED", "no such row waits to be finished");
  rows_.Run(static_cast<int>(indices.size()), [&](int at, int worker) {
    HookedRow& hooked = hooked_[static_cast<size_t>(indices[static_cast<size_t>(at)])];
    RowResult& result = samples_[hooked.sample];
    hooked.sampler->SampleEdited(hooked.raw, hooked.prepared.data(), scratch_[static_cast<size_t>(worker)], result);
    if (result.status == RowStatus::kSampled) {
      hooked.sampler->AcceptDrawn(result);
      if (hooked.matcher) result.is_final = ConstraintRows::AcceptToken(*hooked.matcher, result.token);
    } else if (result.status == RowStatus::kNoTokenAllowed && hooked.matcher && hooked.matcher->IsComplete()) {
      result.status = RowStatus::kComplete;
    }
  });
  for (int32_t index : indices) {
    hooked_[static_cast<size_t>(index)].raw = nullptr;
    hooked_[static_cast<size_t>(index)].matcher = nullptr;
  }
  return samples_;
}

}  // namespace onpolicy
