// JavaScript <-> FullTrainer: openFullTrainer(options) -> an object of functions. Work runs off the JavaScript thread.
#include "trainer/full-trainer.h"

#include <napi.h>

#include "addon/register.h"
#include "addon/trainer-handle.h"
#include "addon/unwrap.h"

namespace onpolicy {
namespace {

using training::FullParameter, training::FullTrainer;
using SharedFullTrainer = std::shared_ptr<TrainerHandle<FullTrainer>>;

// score(row) or addGradients(row, targetWeights) -> Promise<log-probabilities>
Napi::Value ComputeRow(const Napi::CallbackInfo& info, const SharedFullTrainer& handle) {
  const bool gradients = !info[1].IsUndefined();
  return RunBusy(
      info.Env(), handle,
      [row = RowArgument(Fields(info[0])), gradients,
       weights = gradients ? ReadVector<float>(info[1], "targetWeights") : std::vector<float>()](FullTrainer& trainer) {
        return gradients ? trainer.AddGradients(row, weights) : trainer.Score(row);
      },
      ToArray<float>);
}

FullParameter& WeightNamed(Napi::Env env, FullTrainer& trainer, const std::string& name) {
  for (FullParameter& parameter : trainer.weights().parameters())
    if (parameter.name == name) return parameter;
  Refuse(env, "no weight of this model is named " + name);
}

float* WeightColumn(Napi::Env env, FullParameter& parameter, const std::string& column) {
  if (column == "value") return parameter.values();
  if (column == "gradient") return parameter.gradients();
  Refuse(env, "no column is named " + column);
}

// read(column, name) -> Float32Array
Napi::Value ReadWeight(const Napi::CallbackInfo& info, const SharedFullTrainer& handle) {
  Napi::Env env = info.Env();
  FullParameter& parameter = WeightNamed(env, Idle(env, handle), info[1].ToString().Utf8Value());
  const float* from = WeightColumn(env, parameter, info[0].ToString().Utf8Value());
  return ToArray(env, std::vector<float>(from, from + parameter.count()));
}

// write({ [name]: Float32Array }): sets the weights' values. Weights that are not named stay unchanged.
void WriteWeights(const Napi::CallbackInfo& info, const SharedFullTrainer& handle) {
  Napi::Env env = info.Env();
  FullTrainer& trainer = Idle(env, handle);
  const Fields given(info[0]);
  const Napi::Array names = given.object().GetPropertyNames();
  for (uint32_t i = 0; i < names.Length(); ++i) {
    const std::string name = names.Get(i).ToString().Utf8Value();
    FullParameter& parameter = WeightNamed(env, trainer, name);
    const std::vector<float> values = ReadVector<float>(given[name.c_str()], name);
    if (values.size() != parameter.count())
      RefuseField(env, name, std::to_string(parameter.count()) + " numbers, got " + std::to_string(values.size()));
    std::copy(values.begin(), values.end(), parameter.values());
  }
  trainer.weights().Refresh();
}

Napi::Array DescribeWeights(Napi::Env env, FullTrainer& trainer) {
  return ListOf(env, trainer.weights().parameters(), [env](const FullParameter& parameter) {
    return ObjectOf(env, "name", parameter.name, "type", Api().ggml_type_name(parameter.stored_type), "in", parameter.in, "out",
                    parameter.columns, "offset", parameter.offset_in_file);
  });
}

Napi::Value ToJavaScript(Napi::Env env, const SharedFullTrainer& handle) {
  const training::Shape& shape = handle->trainer->shape();
  Napi::Object object = ObjectOf(env, "parameters", DescribeWeights(env, *handle->trainer), "vocabularySize", shape.vocabulary,
                                 "contextSize", shape.context);
  SetLifeMethods(object, handle);
  auto method = [&](const char* name, auto function) { SetMethod(object, handle, name, function); };
  method("score", ComputeRow);
  method("addGradients", ComputeRow);
  method("step", StepTrainer<FullTrainer>);
  method("read", ReadWeight);
  method("write", WriteWeights);
  method("zeroGradients", [](const Napi::CallbackInfo& info, const SharedFullTrainer& handle) {
    Idle(info.Env(), handle).weights().ZeroGradients();
  });
  return object;
}

// openFullTrainer({ model, threads, contextSize, isNarrow }) -> Promise<trainer>
Napi::Value OpenFullTrainer(const Napi::CallbackInfo& info) {
  const Fields given(info[0]);
  RequireLibrary(info.Env());
  training::FullTrainerOptions options{.model = given.Text("model"),
                             .threads = given.Integer("threads", 1, 512),
                             .context = static_cast<int64_t>(given.Number("contextSize")),
                             .is_narrow = given.Flag("isNarrow")};
  return AsyncTask::Run(
      info.Env(), [options] { return OpenHandle<FullTrainer>(options); },
      [](Napi::Env env, const SharedFullTrainer& handle) { return ToJavaScript(env, handle); });
}

}  // namespace

void RegisterFullTrainer(Napi::Env env, Napi::Object exports) {
  exports.Set("openFullTrainer", Napi::Function::New(env, OpenFullTrainer, "openFullTrainer"));
}

}  // namespace onpolicy
