#include "addon/rows.h"

#include <set>
#include <string>

#include "addon/async-task.h"
#include "addon/handle.h"
#include "addon/register.h"
#include "addon/unwrap.h"

namespace onpolicy {
namespace {

// Returns the matcher in a handle that the grammar addon made, or null.
std::shared_ptr<TokenMatcher> ReadMatcher(const Napi::Value& value) {
  if (value.IsNull() || value.IsUndefined()) return nullptr;
  return UnwrapShared<TokenMatcher>(value, kMatcherTag, "matchers", "handles of matchers");
}

// Sets `candidates` if any row has them: the columns of all rows laid end to end.
void SetCandidates(Napi::Env env, const std::vector<RowResult>& rows, Napi::Object object) {
  const auto has_any = [](const RowResult& row) { return !row.candidate_ids.empty(); };
  if (std::none_of(rows.begin(), rows.end(), has_any)) return;
  std::vector<int32_t> offsets{0}, ids;
  std::vector<float> scores, logprobs;
  for (const RowResult& row : rows) {
    ids.insert(ids.end(), row.candidate_ids.begin(), row.candidate_ids.end());
    scores.insert(scores.end(), row.candidate_scores.begin(), row.candidate_scores.end());
    logprobs.insert(logprobs.end(), row.candidate_logprobs.begin(), row.candidate_logprobs.end());
    offsets.push_back(static_cast<int32_t>(ids.size()));
  }
  object.Set("candidates", ObjectOf(env, "offsets", offsets, "ids", ids, "scores", scores, "logprobs", logprobs));
}

// Sets the tokens of a column of lists if any row has them.
void SetTokens(Napi::Env env, const std::vector<RowResult>& rows, std::vector<int32_t> RowResult::*column, const char* name,
               Napi::Object object) {
  std::vector<int32_t> offsets{0}, ids;
  for (const RowResult& row : rows) {
    ids.insert(ids.end(), (row.*column).begin(), (row.*column).end());
    offsets.push_back(static_cast<int32_t>(ids.size()));
  }
  if (!ids.empty()) object.Set(name, ObjectOf(env, "offsets", offsets, "ids", ids));
}

// Returns the row of a hooked sample. Throws if it does not wait to be sampled.
float* PreparedRow(RowSampler& rows, Napi::Value index) {
  float* row = rows.PreparedRow(static_cast<size_t>(ReadInteger(index, "index")));
  if (row == nullptr) RefuseField(index.Env(), "index", "a row that waits");
  return row;
}

void CheckDrafts(Napi::Env env, const RowsInput& input, int32_t vocab_size) {
  const size_t samples = input.samplers.size();
  const bool has_drafts = !input.drafted.empty() || !input.drafters.empty();
  if (!has_drafts) return;
  const bool has_columns = input.drafted.size() == samples && input.drafters.size() == samples;
  Check(env, has_columns && input.draft_limits.size() == kLastDrafts * samples,
        "drafts: expected one of each column per sample, and three limits");
  for (int32_t limit : input.draft_limits) Check(env, limit >= 0, "drafts.limits: expected numbers >= 0");
  for (size_t i = 0; i < samples; ++i) {
    Check(env, input.drafted[i] >= kNoToken && input.drafted[i] < vocab_size, "drafts.drafted: id outside the vocabulary");
    if (!input.IsDraft(i)) continue;
    Check(env, i > 0 && input.samplers[i] == input.samplers[i - 1] && input.samplers[i]->plan().candidates == 0,
          "drafts.drafted: expected drafts behind a row of the same sampler");
    Check(env, input.matchers.empty() || input.matchers[i] == input.matchers[i - 1],
          "drafts.drafted: expected the matcher of the row before");
  }
}

void CheckRows(Napi::Env env, const RowsInput& input, int32_t vocab_size) {
  const auto check = [env](bool condition, const char* message) { Check(env, condition, message); };
  check(input.matchers.empty() || input.matchers.size() == input.samplers.size(), "matchers: expected one per sample");
  for (const auto& matcher : input.matchers)
    check(!matcher || static_cast<int32_t>(matcher->vocabulary_size()) == vocab_size, "matchers: of another vocabulary");
  for (const auto& sampler : input.samplers)
    check(sampler->plan().vocab_size == vocab_size, "samplers: of another vocabulary");
  CheckDrafts(env, input, vocab_size);
  // All rows are sampled at once, so only the drafts behind a row may share its sampler and matcher.
  std::set<const void*> used;
  for (size_t i = 0; i < input.samplers.size(); ++i) {
    if (input.IsDraft(i)) continue;
    check(used.insert(input.samplers[i].get()).second, "samplers: expected one sampler for each row");
    check(i >= input.matchers.size() || !input.matchers[i] || used.insert(input.matchers[i].get()).second,
          "matchers: expected one matcher for each row");
  }
  for (size_t i = 0; i < input.hooked.size(); ++i)
    check(input.hooked[i] >= 0 && input.hooked[i] < static_cast<int32_t>(input.samplers.size()) &&
              (i == 0 || input.hooked[i] > input.hooked[i - 1]) && !input.IsDraft(static_cast<size_t>(input.hooked[i])),
          "hooked: expected ascending indices of samplers");
  check(input.score_rows.size() % 3 == 0, "scoreRows: expected three numbers per row");
  for (size_t i = 0; i < input.score_rows.size(); i += 3)
    check(input.score_rows[i + 1] >= 0 && input.score_rows[i + 1] < vocab_size, "scoreRows: token out of range");
}

// Samples rows of logits that JavaScript owns. One call at a time.
class JsRowSampler : public Napi::ObjectWrap<JsRowSampler> {
 public:
  static Napi::Function Define(Napi::Env env) {
    return DefineClass(env, "RowSampler",
                       {InstanceMethod<&JsRowSampler::Sample>("sample"), InstanceMethod<&JsRowSampler::ReadRow>("readRow"),
                        InstanceMethod<&JsRowSampler::WriteRow>("writeRow"),
                        InstanceMethod<&JsRowSampler::Finish>("finish")});
  }

  explicit JsRowSampler(const Napi::CallbackInfo& info) : Napi::ObjectWrap<JsRowSampler>(info) {
    const int32_t vocab_size = ReadInteger(info[0], "vocabSize", 1, 1 << 27);
    const int32_t threads = ReadInteger(info[1], "threads", 1, 512);
    rows_ = std::make_shared<RowSampler>(vocab_size, threads);
  }

 private:
  // sample({ logits, sampleRows, samplers, matchers, drafts, hooked, scoreRows }) -> Promise<{ samples, scores }>
  Napi::Value Sample(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    CheckIdle(env);
    const Fields step(info[0], "step");
    auto input = std::make_shared<RowsInput>();
    ReadRows(step, rows_->vocab_size(), *input);
    const auto logits = ReadArray<float>(step["logits"], "logits");
    const std::vector<int32_t> sample_rows = step.IntegersOrNone("sampleRows");
    if (sample_rows.size() != input->samplers.size()) RefuseField(env, "samplers", "one per sampled row");
    const size_t row_size = static_cast<size_t>(rows_->vocab_size());
    const auto count = static_cast<int32_t>(logits.ElementLength() / row_size);
    std::vector<const float*> rows;
    const auto add = [&](int32_t row, const char* field) {
      if (row < 0 || row >= count) RefuseField(env, field, "rows of logits");
      rows.push_back(logits.Data() + static_cast<size_t>(row) * row_size);
    };
    for (int32_t row : sample_rows) add(row, "sampleRows");
    for (size_t i = 0; i < input->score_rows.size(); i += 3) add(input->score_rows[i], "scoreRows");
    logits_ = Napi::Persistent(logits.As<Napi::Object>());
    return Run(
        info,
        [sampler = rows_, input, rows = std::move(rows)] {
          ConstraintRows constraints = sampler->Constrain(*input);
          RowsOutput output;
          sampler->Run(*input, rows, constraints, &output);
          return output;
        },
        ToSamplesAndScores);
  }

  // readRow(index, row: Float32Array): copies the row of the last call's hooked sample `index` out.
  void ReadRow(const Napi::CallbackInfo& info) {
    CheckIdle(info.Env());
    CopyOut(*rows_, info);
  }

  // writeRow(index, row: Float32Array): copies it back, edited.
  void WriteRow(const Napi::CallbackInfo& info) {
    CheckIdle(info.Env());
    CopyIn(*rows_, info);
  }

  // finish(indices: Int32Array) -> Promise<samples>: samples these hooked rows of the last call and returns all its samples.
  Napi::Value Finish(const Napi::CallbackInfo& info) {
    CheckIdle(info.Env());
    return Run(info, [sampler = rows_, indices = ReadIndices(info[0])] { return sampler->Finish(indices); }, ToRows);
  }

  template <typename Work, typename Finish>
  Napi::Value Run(const Napi::CallbackInfo& info, Work work, Finish finish) {
    // This object lives as long as the task.
    return AsyncTask::Run(info.Env(), info.This().As<Napi::Object>(), Busy(&running_, std::move(work)), std::move(finish));
  }

  void CheckIdle(Napi::Env env) const {
    Check(env, !running_, "rows are being sampled");
  }

  std::shared_ptr<RowSampler> rows_;
  Napi::ObjectReference logits_;  // kept alive for Finish
  std::atomic<bool> running_{false};
};

}  // namespace

void CopyOut(RowSampler& rows, const Napi::CallbackInfo& info) {
  const float* prepared = PreparedRow(rows, info[0]);
  std::copy_n(prepared, rows.vocab_size(), ReadVocabularyRow(info[1], "row", rows.vocab_size()).Data());
}

void CopyIn(RowSampler& rows, const Napi::CallbackInfo& info) {
  float* prepared = PreparedRow(rows, info[0]);
  std::copy_n(ReadVocabularyRow(info[1], "row", rows.vocab_size()).Data(), rows.vocab_size(), prepared);
}

std::vector<int32_t> ReadIndices(Napi::Value value) {
  std::vector<int32_t> indices = ReadVector<int32_t>(value, "indices");
  for (size_t i = 0; i < indices.size(); ++i)
    if (indices[i] < 0 || (i > 0 && indices[i] <= indices[i - 1])) RefuseField(value.Env(), "indices", "ascending numbers");
  return indices;
}

void ReadRows(const Fields& step, int32_t vocab_size, RowsInput& input) {
  const Napi::Env env = step.object().Env();
  const auto each = [&](const char* name, const auto& take) {
    if (!step[name].IsArray()) return;
    const auto list = step[name].As<Napi::Array>();
    for (uint32_t i = 0; i < list.Length(); ++i) take(list.Get(i));
  };
  input.hooked = step.IntegersOrNone("hooked");
  input.score_rows = step.IntegersOrNone("scoreRows");
  each("samplers", [&](Napi::Value value) { input.samplers.push_back(UnwrapSampler(env, value)); });
  each("matchers", [&](Napi::Value value) { input.matchers.push_back(ReadMatcher(value)); });
  if (step["drafts"].IsObject()) {
    const Fields drafts(step["drafts"], "drafts");
    input.drafted = drafts.IntegersOrNone("drafted");
    input.draft_limits = drafts.IntegersOrNone("limits");
    if (!drafts["drafters"].IsArray()) RefuseField(env, "drafts.drafters", "an array");
    const auto drafters = drafts["drafters"].As<Napi::Array>();
    for (uint32_t i = 0; i < drafters.Length(); ++i) input.drafters.push_back(UnwrapDrafter(drafters.Get(i)));
  }
  CheckRows(env, input, vocab_size);
}

Napi::Object ToRows(Napi::Env env, const std::vector<RowResult>& rows) {
  std::vector<uint8_t> status, is_final;
  std::vector<int32_t> tokens, ranks, offsets{0}, top_ids;
  std::vector<float> logprobs, top_logprobs;
  for (const RowResult& row : rows) {
    status.push_back(static_cast<uint8_t>(row.status));
    tokens.push_back(row.token);
    is_final.push_back(row.is_final);
    logprobs.push_back(row.logprob);
    ranks.push_back(row.rank);
    top_ids.insert(top_ids.end(), row.top_ids.begin(), row.top_ids.end());
    top_logprobs.insert(top_logprobs.end(), row.top_logprobs.begin(), row.top_logprobs.end());
    offsets.push_back(static_cast<int32_t>(top_ids.size()));
  }
  Napi::Object object = ObjectOf(env, "status", status, "tokens", tokens, "isFinal", is_final, "logprobs", logprobs, "ranks", ranks,
                                 "topOffsets", offsets, "topIds", top_ids, "topLogprobs", top_logprobs);
  SetCandidates(env, rows, object);
  SetTokens(env, rows, &RowResult::forced, "forced", object);
  SetTokens(env, rows, &RowResult::drafts, "drafts", object);
  return object;
}

Napi::Object ToSamplesAndScores(Napi::Env env, const RowsOutput& output) {
  Napi::Object result = ObjectOf(env, "samples", ToRows(env, output.samples), "scores", ToRows(env, output.scores), "isAhead", output.is_ahead);
  if (const auto& [ms, passes, tokens, sequences] = output.draft_work; passes > 0)
    result.Set("drafting", ObjectOf(env, "ms", ms, "passes", passes, "tokens", tokens, "sequences", sequences));
  return result;
}

void RegisterRows(Napi::Env env, Napi::Object exports) { exports.Set("RowSampler", JsRowSampler::Define(env)); }

}  // namespace onpolicy
