// JavaScript options and tokens -> the native sampler. Checks every value.
#include <algorithm>

#include "addon/arguments.h"
#include "addon/register.h"
#include "addon/unwrap.h"
#include "sampler/philox.h"

namespace onpolicy {
namespace {

constexpr napi_type_tag kTokenTextsTag = {0x2d7a90c4e15b3f68u, 0xc83e41f6720a9db5u};
constexpr napi_type_tag kPlanTag = {0x8c1f3a5be2d94f07u, 0x9b64d0217ac85e13u};
constexpr napi_type_tag kSamplerTag = {0x51e7b2f08a3c4d96u, 0xa40f6be91d72c538u};

constexpr int32_t kMaxVocabSize = 1 << 27;
constexpr double kMaxFloat = std::numeric_limits<float>::max();

void ReadBias(const Fields& options, SamplerPlan& plan) {
  const Napi::Value ids = options["logitBiasIds"], values = options["logitBiasValues"];
  if (IsAbsent(ids) && IsAbsent(values)) return;
  const Napi::Int32Array id_array = ReadTokenIds(ids, "logitBiasIds", plan.vocab_size);
  const Napi::Float32Array value_array = ReadArray<float>(values, "logitBiasValues");
  if (id_array.ElementLength() != value_array.ElementLength())
    RefuseField(ids.Env(), "logitBiasValues", "one value per id");
  for (size_t i = 0; i < id_array.ElementLength(); ++i) {
    if (!std::isfinite(value_array[i])) RefuseField(ids.Env(), "logitBiasValues", "finite numbers");
    plan.logit_bias.emplace_back(id_array[i], value_array[i]);
  }
}

bool HasTag(Napi::Value value, const napi_type_tag& tag) {
  return value.IsObject() && value.As<Napi::Object>().CheckTypeTag(&tag);
}

// `new TokenTexts(bytes, offsets)`: what each token adds to the text, for plans with bad words.
class TokenTextsObject : public Napi::ObjectWrap<TokenTextsObject> {
 public:
  static Napi::Function Define(Napi::Env env) { return DefineClass(env, "TokenTexts", {}); }

  static std::shared_ptr<const TokenTexts> From(Napi::Value value) {
    if (!HasTag(value, kTokenTextsTag)) RefuseField(value.Env(), "tokenTexts", "TokenTexts");
    return Unwrap(value.As<Napi::Object>())->texts_;
  }

  explicit TokenTextsObject(const Napi::CallbackInfo& info) : ObjectWrap(info) {
    const auto bytes = ReadArray<uint8_t>(info[0], "bytes");
    std::vector<uint32_t> offsets = ReadVector<uint32_t>(info[1], "offsets");
    if (offsets.empty() || !std::is_sorted(offsets.begin(), offsets.end()) || offsets.back() > bytes.ElementLength())
      RefuseField(info.Env(), "offsets", "ascending numbers within bytes");
    texts_ = std::make_shared<const TokenTexts>(
        std::string(reinterpret_cast<const char*>(bytes.Data()), bytes.ElementLength()), std::move(offsets));
    Value().TypeTag(&kTokenTextsTag);
  }

 private:
  std::shared_ptr<const TokenTexts> texts_;
};

// Reads texts to find in the output. `tokens_field` names the option with the text of each token. Returns null if there are no texts.
std::shared_ptr<const BadTexts> ReadOutputTexts(const Fields& options, const char* field, const char* tokens_field, int32_t vocab_size) {
  const Napi::Value given = options[field];
  if (IsAbsent(given)) return nullptr;
  std::vector<std::string> texts = ReadTexts(given, field);
  if (texts.empty()) return nullptr;
  for (const std::string& text : texts)
    if (text.empty()) RefuseField(given.Env(), field, "texts that are not empty");
  std::shared_ptr<const TokenTexts> tokens = TokenTextsObject::From(options[tokens_field]);
  if (tokens->size() != static_cast<size_t>(vocab_size)) RefuseField(given.Env(), tokens_field, "a text for each token");
  return std::make_shared<const BadTexts>(std::move(tokens), std::move(texts));
}

// Number fields of a plan, under the names of the request's fields.
struct FloatField {
  const char* name;
  float SamplerPlan::*target;
  double least, most;
};
struct IntegerField {
  const char* name;
  int32_t SamplerPlan::*target;
  int32_t least, most = std::numeric_limits<int32_t>::max();
};

constexpr FloatField kFloats[] = {
    {"temperature", &SamplerPlan::temperature, 0, kMaxFloat},
    {"top_p", &SamplerPlan::top_p, 0, 1},
    {"min_p", &SamplerPlan::min_p, 0, 1},
    {"typical_p", &SamplerPlan::typical_p, 0, 1},
    {"xtc_probability", &SamplerPlan::xtc_probability, 0, 1},
    {"xtc_threshold", &SamplerPlan::xtc_threshold, 0, 1},
    {"dynatemp_range", &SamplerPlan::dynatemp_range, 0, kMaxFloat},
    {"dynatemp_exponent", &SamplerPlan::dynatemp_exponent, 0, kMaxFloat},
    {"mirostat_tau", &SamplerPlan::mirostat_tau, 0, kMaxFloat},
    {"mirostat_eta", &SamplerPlan::mirostat_eta, 0, kMaxFloat},
    {"top_n_sigma", &SamplerPlan::top_n_sigma, -1, kMaxFloat},
    {"adaptive_target", &SamplerPlan::adaptive_target, -1, 1},
    {"adaptive_decay", &SamplerPlan::adaptive_decay, 0, 0.99},
    {"dry_multiplier", &SamplerPlan::dry_multiplier, 0, kMaxFloat},
    {"dry_base", &SamplerPlan::dry_base, 1, kMaxFloat},
    {"repetition_penalty", &SamplerPlan::repetition_penalty, std::numeric_limits<float>::min(), kMaxFloat},
    {"frequency_penalty", &SamplerPlan::frequency_penalty, -kMaxFloat, kMaxFloat},
    {"presence_penalty", &SamplerPlan::presence_penalty, -kMaxFloat, kMaxFloat},
};
constexpr IntegerField kIntegers[] = {
    {"top_k", &SamplerPlan::top_k, -1},
    {"mirostat", &SamplerPlan::mirostat, 0, 2},
    {"dry_allowed_length", &SamplerPlan::dry_allowed_length, 0},
    {"dry_penalty_last_n", &SamplerPlan::dry_penalty_last_n, -1},
    {"min_tokens", &SamplerPlan::min_tokens, 0},
    {"topLogprobs", &SamplerPlan::top_logprobs, -1},
    {"candidates", &SamplerPlan::candidates, 0},
};

SamplerPlan ReadPlan(Napi::Value value) {
  const Fields options(value);
  std::vector<std::string_view> names = {"vocabSize", "logitBiasIds", "logitBiasValues", "allowed", "bad_words", "tokenTexts", "stopIds",
                                         "endIds", "logprobIds", "processedLogprobs", "dry_sequence_breakers", "breakerTexts"};
  for (const FloatField& field : kFloats) names.push_back(field.name);
  for (const IntegerField& field : kIntegers) names.push_back(field.name);
  options.RefuseOthers("SamplerPlan", names);
  SamplerPlan plan;
  plan.vocab_size = ReadInteger(options["vocabSize"], "vocabSize", 1, kMaxVocabSize);
  for (const auto& [name, target, least, most] : kFloats)
    if (const Napi::Value given = options[name]; !IsAbsent(given)) plan.*target = static_cast<float>(ReadNumber(given, name, least, most));
  for (const auto& [name, target, least, most] : kIntegers)
    if (const Napi::Value given = options[name]; !IsAbsent(given)) plan.*target = ReadInteger(given, name, least, most);
  ReadBias(options, plan);
  if (const uint32_t* allowed = ReadMask(options["allowed"], "allowed", plan.vocab_size))
    plan.allowed.assign(allowed, allowed + (static_cast<size_t>(plan.vocab_size) + 31) / 32);
  plan.bad_texts = ReadOutputTexts(options, "bad_words", "tokenTexts", plan.vocab_size);
  plan.dry_breakers = ReadOutputTexts(options, "dry_sequence_breakers", "breakerTexts", plan.vocab_size);
  const auto ids = [&](const char* field, std::vector<int32_t>& target) {
    const Napi::Value given = options[field];
    if (!IsAbsent(given)) target = ToVector(ReadTokenIds(given, field, plan.vocab_size));
  };
  ids("stopIds", plan.stop_ids);
  ids("endIds", plan.end_ids);
  ids("logprobIds", plan.logprob_ids);
  const Napi::Value processed = options["processedLogprobs"];
  if (!IsAbsent(processed)) plan.processed_logprobs = ReadBoolean(processed, "processedLogprobs");
  return plan;
}

// Returns the lowest 64 bits of a bigint.
uint64_t ReadSeed(Napi::Value value) {
  if (!value.IsBigInt()) RefuseField(value.Env(), "seed", "a bigint");
  bool lossless = false;
  return value.As<Napi::BigInt>().Uint64Value(&lossless);
}

// uniforms(seed, position, count) -> the numbers at `count` places of the seed's random stream.
Napi::Value Uniforms(const Napi::CallbackInfo& info) {
  const uint64_t seed = ReadSeed(info[0]);
  const auto position = static_cast<uint64_t>(ReadNumber(info[1], "position", 0, 9007199254740991.0));
  const auto count = static_cast<size_t>(ReadInteger(info[2], "count"));
  Napi::Float64Array numbers = Napi::Float64Array::New(info.Env(), count);
  for (size_t i = 0; i < count; ++i) numbers[i] = UniformAt(seed, position + i);
  return numbers;
}

// `new SamplerPlan(options)`: an immutable plan, shared by the samplers of a request.
class SamplerPlanObject : public Napi::ObjectWrap<SamplerPlanObject> {
 public:
  static Napi::Function Define(Napi::Env env) { return DefineClass(env, "SamplerPlan", {}); }

  static std::shared_ptr<const SamplerPlan> From(Napi::Value value) {
    if (!HasTag(value, kPlanTag)) RefuseField(value.Env(), "plan", "a SamplerPlan");
    return Unwrap(value.As<Napi::Object>())->plan_;
  }

  explicit SamplerPlanObject(const Napi::CallbackInfo& info) : ObjectWrap(info) {
    plan_ = std::make_shared<const SamplerPlan>(ReadPlan(info[0]));
    Value().TypeTag(&kPlanTag);
  }

 private:
  std::shared_ptr<const SamplerPlan> plan_;
};

// `new Sampler(plan, seed)`: the state of one sequence. `new Sampler(sampler)`: a copy of that state.
// JavaScript must not touch it while a native step uses it.
class SamplerObject : public Napi::ObjectWrap<SamplerObject> {
 public:
  static Napi::Function Define(Napi::Env env) {
    return DefineClass(env, "Sampler",
                       {InstanceMethod<&SamplerObject::AcceptPrompt>("acceptPrompt"),
                        InstanceMethod<&SamplerObject::Accept>("accept"),
                        InstanceMethod<&SamplerObject::HoldEnd>("holdEnd"),
                        InstanceMethod<&SamplerObject::Force>("force")});
  }

  explicit SamplerObject(const Napi::CallbackInfo& info) : ObjectWrap(info) {
    if (info.Length() == 1 && HasTag(info[0], kSamplerTag)) {
      sampler_ = std::make_shared<Sampler>(*Unwrap(info[0].As<Napi::Object>())->sampler_);
    } else {
      std::shared_ptr<const SamplerPlan> plan = SamplerPlanObject::From(info[0]);
      sampler_ = std::make_shared<Sampler>(std::move(plan), ReadSeed(info[1]));
    }
    Value().TypeTag(&kSamplerTag);
  }

  const std::shared_ptr<Sampler>& sampler() const { return sampler_; }

 private:
  int32_t vocab_size() const { return sampler_->plan().vocab_size; }

  void AcceptPrompt(const Napi::CallbackInfo& info) {
    const Napi::Int32Array ids = ReadTokenIds(info[0], "ids", vocab_size());
    sampler_->AcceptPrompt(ids.Data(), ids.ElementLength());
  }

  void Accept(const Napi::CallbackInfo& info) {
    const int32_t id = ReadInteger(info[0], "id", 0, vocab_size() - 1);
    if (IsAbsent(info[1])) {
      sampler_->Accept(id);
    } else {
      RowResult drawn;
      drawn.token = id;
      drawn.surprise = ReadNumber(info[1], "surprise", 0, kMaxFloat);
      sampler_->AcceptDrawn(drawn);
    }
  }

  void HoldEnd(const Napi::CallbackInfo& info) { sampler_->HoldEnd(ReadBoolean(info[0], "isHeld")); }

  void Force(const Napi::CallbackInfo& info) {
    sampler_->Force(ToVector(ReadTokenIds(info[0], "ids", vocab_size())));
  }

  std::shared_ptr<Sampler> sampler_;
};

}  // namespace

std::shared_ptr<Sampler> UnwrapSampler(Napi::Env env, Napi::Value value) {
  if (!HasTag(value, kSamplerTag)) RefuseField(env, "sampler", "a Sampler");
  return Napi::ObjectWrap<SamplerObject>::Unwrap(value.As<Napi::Object>())->sampler();
}

void RegisterSampler(Napi::Env env, Napi::Object exports) {
  exports.Set("TokenTexts", TokenTextsObject::Define(env));
  exports.Set("SamplerPlan", SamplerPlanObject::Define(env));
  exports.Set("Sampler", SamplerObject::Define(env));
  exports.Set("uniforms", Napi::Function::New<Uniforms>(env, "uniforms"));
  Napi::Array fields = Napi::Array::New(env);
  for (const FloatField& field : kFloats) fields.Set(fields.Length(), field.name);
  for (const IntegerField& field : kIntegers) fields.Set(fields.Length(), field.name);
  exports.Set("samplerFields", fields);
}

}  // namespace onpolicy
