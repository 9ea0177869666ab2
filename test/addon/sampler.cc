// One row of logits -> what the sampler makes of it, on the JavaScript thread and with any of its kernels.
#include "sampler/sampler.h"

#include "./entry.h"
#include "addon/arguments.h"
#include "addon/unwrap.h"

namespace onpolicy {
namespace {

const Kernels& ReadSamplerKernels(Napi::Value value) {
  if (IsAbsent(value)) return BestKernels();
  const std::string name = ReadText(value, "kernels");
  for (const Kernels* kernels : AvailableKernels())
    if (name == kernels->name) return *kernels;
  RefuseField(value.Env(), "kernels", "one of samplerKernels()");
}

SamplerScratch& ScratchOf(Napi::Value kernels) {
  thread_local SamplerScratch scratch;
  scratch.kernels = &ReadSamplerKernels(kernels);
  return scratch;
}

Napi::Object ToObject(Napi::Env env, const RowResult& result) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("status", static_cast<int32_t>(result.status));
  object.Set("token", result.token);
  object.Set("logprob", result.logprob);
  object.Set("surprise", result.surprise);
  object.Set("rank", result.rank);
  object.Set("topIds", ToArray(env, result.top_ids));
  object.Set("topLogprobs", ToArray(env, result.top_logprobs));
  return object;
}

// `this` of a method that is added to the class `Sampler`.
std::shared_ptr<Sampler> SamplerOf(const Napi::CallbackInfo& info) { return UnwrapSampler(info.Env(), info.This()); }

const float* Logits(const Sampler& sampler, Napi::Value value, const char* field = "logits") {
  return ReadVocabularyRow(value, field, sampler.plan().vocab_size).Data();
}

const uint32_t* Mask(const Sampler& sampler, Napi::Value value) { return ReadMask(value, "mask", sampler.plan().vocab_size); }

// sample(logits, mask?, kernels?) -> a row
Napi::Value Sample(const Napi::CallbackInfo& info) {
  const auto sampler = SamplerOf(info);
  RowResult result;
  sampler->Sample(Logits(*sampler, info[0]), Mask(*sampler, info[1]), ScratchOf(info[2]), result);
  return ToObject(info.Env(), result);
}

// prepare(logits, mask?) -> the row with masks and bias
Napi::Value Prepare(const Napi::CallbackInfo& info) {
  const auto sampler = SamplerOf(info);
  Napi::Float32Array row = Napi::Float32Array::New(info.Env(), static_cast<size_t>(sampler->plan().vocab_size));
  sampler->Prepare(Logits(*sampler, info[0]), Mask(*sampler, info[1]), row.Data());
  return row;
}

// sampleEdited(logits, row) -> a row
Napi::Value SampleEdited(const Napi::CallbackInfo& info) {
  const auto sampler = SamplerOf(info);
  RowResult result;
  sampler->SampleEdited(Logits(*sampler, info[0]), Logits(*sampler, info[1], "row"), ScratchOf(info[2]), result);
  return ToObject(info.Env(), result);
}

// drawMany(logits, count, mask?) -> the tokens of the next `count` places in the random stream. Accepts none.
Napi::Value DrawMany(const Napi::CallbackInfo& info) {
  const auto sampler = SamplerOf(info);
  const float* logits = Logits(*sampler, info[0]);
  const int32_t count = ReadInteger(info[1], "count", 0, 1 << 24);
  const uint32_t* mask = Mask(*sampler, info[2]);
  Napi::Int32Array tokens = Napi::Int32Array::New(info.Env(), static_cast<size_t>(count));
  SamplerScratch& scratch = ScratchOf(info[3]);
  RowResult result;
  for (int32_t i = 0; i < count; ++i) {
    sampler->SampleAt(static_cast<uint64_t>(sampler->generated() + i), logits, mask, scratch, result);
    tokens[static_cast<size_t>(i)] = result.token;
  }
  return tokens;
}

// scoreRow(logits, token, k) -> log-softmax, rank and k best of a row
Napi::Value ScoreRowFromJs(const Napi::CallbackInfo& info) {
  const Napi::Float32Array logits = ReadArray<float>(info[0], "logits");
  if (logits.ElementLength() == 0) RefuseField(info.Env(), "logits", "a vocabulary of logits");
  const int32_t vocab_size = static_cast<int32_t>(logits.ElementLength());
  const int32_t token = ReadInteger(info[1], "token", 0, vocab_size - 1);
  RowResult result;
  ScoreRow(logits.Data(), vocab_size, token, {.best = ReadInteger(info[2], "k")}, ScratchOf(info[3]), result);
  return ToObject(info.Env(), result);
}

// samplerKernels() -> the names of the kernel tables this processor runs, the fastest last.
Napi::Value SamplerKernels(const Napi::CallbackInfo& info) {
  Napi::Array names = Napi::Array::New(info.Env());
  for (const Kernels* kernels : AvailableKernels()) names.Set(names.Length(), kernels->name);
  return names;
}

}  // namespace

void RegisterSamplerTests(Napi::Env env, Napi::Object exports) {
  const auto methods = exports.Get("Sampler").As<Napi::Object>().Get("prototype").As<Napi::Object>();
  methods.Set("sample", Napi::Function::New<Sample>(env, "sample"));
  methods.Set("prepare", Napi::Function::New<Prepare>(env, "prepare"));
  methods.Set("sampleEdited", Napi::Function::New<SampleEdited>(env, "sampleEdited"));
  methods.Set("drawMany", Napi::Function::New<DrawMany>(env, "drawMany"));
  exports.Set("scoreRow", Napi::Function::New<ScoreRowFromJs>(env, "scoreRow"));
  exports.Set("samplerKernels", Napi::Function::New<SamplerKernels>(env, "samplerKernels"));
}

}  // namespace onpolicy
