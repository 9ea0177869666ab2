#include "napi/rows.h"

#include <string>

#include "napi/async-task.h"
#include "napi/options.h"
#include "napi/register.h"
#include "napi/sampler.h"

namespace onpolicy {
namespace {

// A matcher's handle, as the grammar part of the addon makes it, or null.
std::shared_ptr<grammar::Matcher> ReadMatcher(const Napi::Value& value) {
  if (value.IsNull() || value.IsUndefined()) return nullptr;
  if (!value.IsExternal()) throw Napi::TypeError::New(value.Env(), "matchers: expected handles of matchers");
  return *value.As<Napi::External<std::shared_ptr<grammar::Matcher>>>().Data();
}

// Sets `candidates` where a row has any: the columns of all rows laid end to end.
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
  Napi::Object candidates = Napi::Object::New(env);
  candidates.Set("offsets", ToTyped<Napi::Int32Array>(env, offsets));
  candidates.Set("ids", ToTyped<Napi::Int32Array>(env, ids));
  candidates.Set("scores", ToTyped<Napi::Float32Array>(env, scores));
  candidates.Set("logprobs", ToTyped<Napi::Float32Array>(env, logprobs));
  object.Set("candidates", candidates);
}

// Sets `forced` where a row has any.
void SetForced(Napi::Env env, const std::vector<RowResult>& rows, Napi::Object object) {
  std::vector<int32_t> offsets{0}, ids;
  for (const RowResult& row : rows) {
    ids.insert(ids.end(), row.forced.begin(), row.forced.end());
    offsets.push_back(static_cast<int32_t>(ids.size()));
  }
  if (ids.empty()) return;
  Napi::Object forced = Napi::Object::New(env);
  forced.Set("offsets", ToTyped<Napi::Int32Array>(env, offsets));
  forced.Set("ids", ToTyped<Napi::Int32Array>(env, ids));
  object.Set("forced", forced);
}

void CheckRows(Napi::Env env, const RowsInput& input, int32_t vocab_size) {
  const auto check = [env](bool condition, const char* message) {
    if (!condition) throw Napi::RangeError::New(env, message);
  };
  check(input.matchers.empty() || input.matchers.size() == input.samplers.size(), "matchers: expected one per sample");
  for (const auto& matcher : input.matchers)
    check(!matcher || static_cast<int32_t>(matcher->vocabulary_size()) == vocab_size, "matchers: of another vocabulary");
  for (const auto& sampler : input.samplers)
    check(sampler->plan().vocab_size == vocab_size, "samplers: of another vocabulary");
  for (size_t i = 0; i < input.hooked.size(); ++i)
    check(input.hooked[i] >= 0 && input.hooked[i] < static_cast<int32_t>(input.samplers.size()) &&
              (i == 0 || input.hooked[i] > input.hooked[i - 1]),
          "hooked: expected ascending indices of samplers");
  check(input.score_rows.size() % 3 == 0, "scoreRows: expected three numbers per row");
  for (size_t i = 0; i < input.score_rows.size(); i += 3)
    check(input.score_rows[i + 1] >= 0 && input.score_rows[i + 1] < vocab_size, "scoreRows: token out of range");
}

// Samples rows of logits that JavaScript holds. One call at a time.
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
  // sample({ logits, sampleRows, samplers, matchers, hooked, scoreRows }) -> Promise<{ samples, scores }>
  Napi::Value Sample(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    CheckIdle(env);
    if (!info[0].IsObject()) ThrowType(env, "step", "an object");
    const auto object = info[0].As<Napi::Object>();
    auto input = std::make_shared<RowsInput>();
    ReadRows(object, rows_->vocab_size(), *input);
    const auto logits = ReadFloat32Array(object.Get("logits"), "logits");
    const std::vector<int32_t> sample_rows = ReadInts(object, "sampleRows");
    if (sample_rows.size() != input->samplers.size()) ThrowRange(env, "samplers", "one per sampled row");
    const size_t row_size = static_cast<size_t>(rows_->vocab_size());
    const auto count = static_cast<int32_t>(logits.ElementLength() / row_size);
    std::vector<const float*> rows;
    const auto add = [&](int32_t row, const char* field) {
      if (row < 0 || row >= count) ThrowRange(env, field, "rows of logits");
      rows.push_back(logits.Data() + static_cast<size_t>(row) * row_size);
    };
    for (int32_t row : sample_rows) add(row, "sampleRows");
    for (size_t i = 0; i < input->score_rows.size(); i += 3) add(input->score_rows[i], "scoreRows");
    logits_ = Napi::Persistent(logits.As<Napi::Object>());
    auto output = std::make_shared<RowsOutput>();
    return Run(
        info,
        [sampler = rows_, input, rows = std::move(rows), output] {
          sampler->Forget();
          ConstraintRows constraints(input->matchers);
          sampler->Run(*input, rows, constraints, output.get());
          return Status::Ok();
        },
        [output](Napi::Env env) -> Napi::Value { return ToSamplesAndScores(env, *output); });
  }

  // readRow(index, row: Float32Array): copies the row of the last call's hooked sample `index` out.
  Napi::Value ReadRow(const Napi::CallbackInfo& info) {
    const float* prepared = PreparedRow(info);
    std::copy_n(prepared, rows_->vocab_size(), VocabularyRow(info).Data());
    return info.Env().Undefined();
  }

  // writeRow(index, row: Float32Array): copies it back, edited.
  Napi::Value WriteRow(const Napi::CallbackInfo& info) {
    float* prepared = PreparedRow(info);
    std::copy_n(VocabularyRow(info).Data(), rows_->vocab_size(), prepared);
    return info.Env().Undefined();
  }

  // finish(indices: Int32Array) -> Promise<samples>: samples these hooked rows of the last call.
  Napi::Value Finish(const Napi::CallbackInfo& info) {
    CheckIdle(info.Env());
    const Napi::Int32Array given = ReadInt32Array(info[0], "indices");
    std::vector<int32_t> indices(given.Data(), given.Data() + given.ElementLength());
    for (size_t i = 0; i < indices.size(); ++i)
      if (indices[i] < 0 || (i > 0 && indices[i] <= indices[i - 1])) ThrowRange(info.Env(), "indices", "ascending numbers");
    auto results = std::make_shared<std::vector<RowResult>>();
    return Run(
        info, [sampler = rows_, indices = std::move(indices), results] { return sampler->Finish(indices, results.get()); },
        [results](Napi::Env env) -> Napi::Value { return ToRows(env, *results); });
  }

  Napi::Value Run(const Napi::CallbackInfo& info, AsyncTask::Work work, AsyncTask::Finish finish) {
    running_ = true;
    const auto done = [this, finish = std::move(finish)](Napi::Env env) {  // this object lives as long as the task
      running_ = false;
      return finish(env);
    };
    return AsyncTask::Run(info.Env(), info.This().As<Napi::Object>(), std::move(work), done);
  }

  void CheckIdle(Napi::Env env) const {
    if (running_) throw Napi::Error::New(env, "rows are being sampled");
  }

  float* PreparedRow(const Napi::CallbackInfo& info) {
    CheckIdle(info.Env());
    const int32_t index = ReadInteger(info[0], "index", 0, std::numeric_limits<int32_t>::max());
    float* row = rows_->PreparedRow(static_cast<size_t>(index));
    if (row == nullptr) ThrowRange(info.Env(), "index", "a row that waits");
    return row;
  }

  Napi::Float32Array VocabularyRow(const Napi::CallbackInfo& info) const {
    const Napi::Float32Array row = ReadFloat32Array(info[1], "row");
    if (row.ElementLength() != static_cast<size_t>(rows_->vocab_size()))
      ThrowRange(info.Env(), "row", "one number per token");
    return row;
  }

  std::shared_ptr<RowSampler> rows_;
  Napi::ObjectReference logits_;  // kept alive for Finish
  bool running_ = false;          // on the JavaScript thread only
};

}  // namespace

std::vector<int32_t> ReadInts(const Napi::Object& object, const char* name) {
  const Napi::Value value = object.Get(name);
  if (value.IsUndefined()) return {};
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_int32_array)
    throw Napi::TypeError::New(object.Env(), std::string(name) + ": expected an Int32Array");
  const auto array = value.As<Napi::Int32Array>();
  return std::vector<int32_t>(array.Data(), array.Data() + array.ElementLength());
}

void ReadRows(const Napi::Object& object, int32_t vocab_size, RowsInput& input) {
  const Napi::Env env = object.Env();
  input.hooked = ReadInts(object, "hooked");
  input.score_rows = ReadInts(object, "scoreRows");
  if (object.Get("samplers").IsArray()) {
    const auto samplers = object.Get("samplers").As<Napi::Array>();
    for (uint32_t i = 0; i < samplers.Length(); ++i) input.samplers.push_back(UnwrapSampler(env, samplers.Get(i)));
  }
  if (object.Get("matchers").IsArray()) {
    const auto matchers = object.Get("matchers").As<Napi::Array>();
    for (uint32_t i = 0; i < matchers.Length(); ++i) input.matchers.push_back(ReadMatcher(matchers.Get(i)));
  }
  CheckRows(env, input, vocab_size);
}

Napi::Object ToRows(Napi::Env env, const std::vector<RowResult>& rows) {
  const size_t count = rows.size();
  auto status = Napi::Uint8Array::New(env, count);
  auto is_final = Napi::Uint8Array::New(env, count);
  auto tokens = Napi::Int32Array::New(env, count);
  auto logprobs = Napi::Float32Array::New(env, count);
  auto ranks = Napi::Int32Array::New(env, count);
  auto offsets = Napi::Int32Array::New(env, count + 1);
  std::vector<int32_t> top_ids;
  std::vector<float> top_logprobs;
  offsets[0] = 0;
  for (size_t i = 0; i < count; ++i) {
    const RowResult& row = rows[i];
    status[i] = static_cast<uint8_t>(row.status);
    tokens[i] = row.token;
    is_final[i] = row.is_final;
    logprobs[i] = row.logprob;
    ranks[i] = row.rank;
    top_ids.insert(top_ids.end(), row.top_ids.begin(), row.top_ids.end());
    top_logprobs.insert(top_logprobs.end(), row.top_logprobs.begin(), row.top_logprobs.end());
    offsets[i + 1] = static_cast<int32_t>(top_ids.size());
  }
  Napi::Object object = Napi::Object::New(env);
  object.Set("status", status);
  object.Set("tokens", tokens);
  object.Set("isFinal", is_final);
  object.Set("logprobs", logprobs);
  object.Set("ranks", ranks);
  object.Set("topOffsets", offsets);
  object.Set("topIds", ToTyped<Napi::Int32Array>(env, top_ids));
  object.Set("topLogprobs", ToTyped<Napi::Float32Array>(env, top_logprobs));
  SetCandidates(env, rows, object);
  SetForced(env, rows, object);
  return object;
}

Napi::Object ToSamplesAndScores(Napi::Env env, const RowsOutput& output) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("samples", ToRows(env, output.samples));
  result.Set("scores", ToRows(env, output.scores));
  return result;
}

void RegisterRows(Napi::Env env, Napi::Object exports) { exports.Set("RowSampler", JsRowSampler::Define(env)); }

}  // namespace onpolicy
