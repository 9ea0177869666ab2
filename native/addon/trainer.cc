// JavaScript <-> Trainer: openTrainer(options) -> an object of functions. Work runs off the JavaScript thread.
#include "trainer/trainer.h"

#include <napi.h>

#include "addon/register.h"
#include "addon/trainer-handle.h"
#include "addon/unwrap.h"
#include "trainer/formula-check.h"
#include "trainer/graphs/graph.h"
#include "trainer/merge.h"

namespace onpolicy {
namespace {

using training::CheckFormulas, training::Module, training::PackedRow, training::Parameter, training::Trainer;
using SharedTrainer = std::shared_ptr<TrainerHandle<Trainer>>;

// forward(row, gradients, adapterOff) -> Promise<{ logprobs, entropies }>
Napi::Value Forward(const Napi::CallbackInfo& info, const SharedTrainer& handle) {
  const bool gradients = info[1].ToBoolean(), adapter_off = info[2].ToBoolean();
  return RunBusy(
      info.Env(), handle,
      [row = RowArgument(Fields(info[0])), gradients, adapter_off](Trainer& trainer) {
        return trainer.Forward(row, gradients, adapter_off);
      },
      [](Napi::Env env, const training::Scores& scores) {
        return ObjectOf(env, "logprobs", scores.logprobs, "entropies", scores.entropies);
      });
}

// checkMemory(row) -> Promise<void>
Napi::Value CheckMemory(const Napi::CallbackInfo& info, const SharedTrainer& handle) {
  return RunBusy(info.Env(), handle, [row = RowArgument(Fields(info[0]))](Trainer& trainer) { trainer.CheckMemory(row); });
}

// backward(gradLogprobs) -> Promise<void>
Napi::Value Backward(const Napi::CallbackInfo& info, const SharedTrainer& handle) {
  return RunBusy(info.Env(), handle, [gradient = ReadVector<float>(info[0], "gradLogprobs")](Trainer& trainer) {
    trainer.Backward(gradient);
  });
}

using Column = std::vector<float> Parameter::*;

Column ColumnNamed(Napi::Env env, const std::string& name) {
  if (name == "value") return &Parameter::value;
  if (name == "gradient") return &Parameter::gradient;
  if (name == "firstMoment") return &Parameter::first_moment;
  if (name == "secondMoment") return &Parameter::second_moment;
  Refuse(env, "no column is named " + name);
}

// read(column, module?) -> { [module]: { a, b } }, for all modules or for one.
Napi::Value Read(const Napi::CallbackInfo& info, const SharedTrainer& handle) {
  Napi::Env env = info.Env();
  Trainer& trainer = Idle(env, handle);
  const Column column = ColumnNamed(env, info[0].ToString().Utf8Value());
  Napi::Object result = Napi::Object::New(env);
  const std::string only = info[1].IsString() ? info[1].As<Napi::String>().Utf8Value() : "";
  for (const Module& module : trainer.adapter().modules()) {
    if (!only.empty() && only != module.name) continue;
    Napi::Object factors = ObjectOf(env, "a", module.a.*column, "b", module.b.*column);
    if (module.experts > 1) factors.Set("experts", module.experts);
    result.Set(module.name, factors);
  }
  return result;
}

// write(column, { [module]: { a, b } }): modules that are not named stay unchanged.
void Write(const Napi::CallbackInfo& info, const SharedTrainer& handle) {
  Napi::Env env = info.Env();
  Trainer& trainer = Idle(env, handle);
  const Column column = ColumnNamed(env, info[0].ToString().Utf8Value());
  Napi::Object given = Fields(info[1]).object();
  for (Module& module : trainer.adapter().modules()) {
    Napi::Value entry = given.Get(module.name);
    if (entry.IsUndefined()) continue;
    if (!entry.IsObject()) RefuseField(env, module.name, "{ a, b }");
    for (auto [name, parameter] : {std::pair{"a", &module.a}, std::pair{"b", &module.b}}) {
      std::vector<float> values = ReadVector<float>(entry.As<Napi::Object>().Get(name), name);
      if (values.size() != parameter->value.size())
        RefuseField(env, module.name + "." + name,
                    std::to_string(parameter->value.size()) + " numbers, got " + std::to_string(values.size()));
      parameter->*column = std::move(values);
    }
  }
  if (column == &Parameter::value) trainer.AdapterChanged();
}

Napi::Object Describe(Napi::Env env, Trainer& trainer) {
  const training::Shape& shape = trainer.shape();
  Napi::Value delta_net = env.Null(), routing = env.Null();
  if (shape.has_delta_nets())
    delta_net = ObjectOf(env, "keyHeads", shape.delta_net.key_heads, "valueHeads", shape.delta_net.value_heads);
  if (shape.experts > 0)
    routing = ObjectOf(env, "layers", shape.expert_layers(), "count", shape.experts, "used", shape.experts_used);
  const Napi::Array modules = ListOf(env, trainer.adapter().modules(), [env](const Module& module) {
    return ObjectOf(env, "name", module.name, "in", module.in, "out", module.out, "experts", module.experts);
  });
  return ObjectOf(env, "architecture", shape.architecture, "device", trainer.device_name(), "vocabularySize", shape.vocabulary,
                  "contextSize", shape.context, "layerCount", shape.layers, "headCount", shape.heads, "kvHeadCount", shape.kv_heads,
                  "deltaNet", delta_net, "routing", routing, "modules", modules);
}

Napi::Value ToJavaScript(Napi::Env env, const SharedTrainer& handle) {
  Napi::Object object = Napi::Object::New(env);
  SetLifeMethods(object, handle);
  auto method = [&](const char* name, auto function) { SetMethod(object, handle, name, function); };
  object.Set("info", Describe(env, *handle->trainer));
  method("checkMemory", CheckMemory);
  method("forward", Forward);
  method("backward", Backward);
  method("step", StepTrainer<Trainer>);
  method("read", Read);
  method("write", Write);
  method("zeroGradients", [](const Napi::CallbackInfo& info, const SharedTrainer& handle) {
    Idle(info.Env(), handle).adapter().ZeroGradients();
  });
  method("resetOptimizer", [](const Napi::CallbackInfo& info, const SharedTrainer& handle) {
    Idle(info.Env(), handle).adapter().ResetOptimizer();
  });
  method("stepCount", [](const Napi::CallbackInfo& info, const SharedTrainer& handle) -> Napi::Value {
    training::Adapter& adapter = Idle(info.Env(), handle).adapter();
    if (info[0].IsNumber()) adapter.step_count = info[0].As<Napi::Number>().Int64Value();
    return Napi::Number::New(info.Env(), static_cast<double>(adapter.step_count));
  });
  method("memory", [](const Napi::CallbackInfo& info, const SharedTrainer& handle) -> Napi::Value {
    Trainer& trainer = Idle(info.Env(), handle);
    return ObjectOf(info.Env(), "bytes", trainer.memory_bytes(), "keptLayers", trainer.kept_layers());
  });
  return object;
}

training::TrainerOptions TrainerOptionsOf(const Fields& given) {
  return {.model = given.Text("model"),
          .device = given.Text("device"),
          .threads = given.Integer("threads", 1, 512),
          .rank = given.Integer<int64_t>("rank", 1, 4096),
          .alpha = given.Number("alpha"),
          .modules = given.Texts("modules"),
          .context = static_cast<int64_t>(given.Number("contextSize")),
          .memory_budget = static_cast<size_t>(given.Number("memoryBudget")),
          .wide = given.Flag("isWide")};
}

// openTrainer(options) -> Promise<trainer>
Napi::Value OpenTrainer(const Napi::CallbackInfo& info) {
  RequireLibrary(info.Env());
  return AsyncTask::Run(
      info.Env(), [options = TrainerOptionsOf(Fields(info[0]))] {
        const auto handle = OpenHandle<Trainer>(options);
        CheckFormulas(*handle->trainer, options);
        return handle;
      },
      [](Napi::Env env, const SharedTrainer& handle) { return ToJavaScript(env, handle); });
}

// trainingBytes(options, tokens) -> Promise<number>, see Trainer::Measure
Napi::Value TrainingBytes(const Napi::CallbackInfo& info) {
  RequireLibrary(info.Env());
  return AsyncTask::Run(
      info.Env(),
      [options = TrainerOptionsOf(Fields(info[0])), tokens = info[1].ToNumber().Int64Value()] { return Trainer::Measure(options, tokens); },
      ToValue<size_t>);
}

// trainedModules(options) -> Promise<string[]>, see Trainer::ModuleNames
Napi::Value TrainedModules(const Napi::CallbackInfo& info) {
  RequireLibrary(info.Env());
  return AsyncTask::Run(
      info.Env(), [options = TrainerOptionsOf(Fields(info[0]))] { return Trainer::ModuleNames(options); },
      [](Napi::Env env, const std::vector<std::string>& names) -> Napi::Value {
        return ListOf(env, names, [env](const std::string& name) { return Napi::String::New(env, name); });
      });
}

// whyNotTrainable(model) -> Promise<string>: the reason, or an empty text if the model can be trained
Napi::Value WhyNotTrainable(const Napi::CallbackInfo& info) {
  RequireLibrary(info.Env());
  return AsyncTask::Run(
      info.Env(), [model = info[0].ToString().Utf8Value()] { return training::Weights::WhyNot(model); },
      ToValue<std::string>);
}

// quantizeRows(typeName, values, rowSize) -> Uint8Array: the bytes of a weight of that type with shape (rows, rowSize).
Napi::Value QuantizeRows(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  RequireLibrary(env);
  const Library& api = Api();
  const std::string name = info[0].ToString().Utf8Value();
  const std::vector<float> values = ReadVector<float>(info[1], "values");
  const auto row_size = static_cast<int64_t>(info[2].ToNumber().Int64Value());
  const ggml_type type = training::TypeNamed(name);
  if (type == GGML_TYPE_COUNT) Refuse(env, "no weight type is named " + name);
  const auto count = static_cast<int64_t>(values.size());
  if (row_size < 1 || count % row_size != 0 || row_size % api.ggml_blck_size(type) != 0)
    RefuseField(env, "values", "whole rows of whole blocks");
  Napi::Uint8Array bytes =
      Napi::Uint8Array::New(env, static_cast<size_t>(count / row_size) * api.ggml_row_size(type, row_size));
  if (type == GGML_TYPE_F32)
    std::copy_n(reinterpret_cast<const uint8_t*>(values.data()), bytes.ByteLength(), bytes.Data());
  else
    api.ggml_quantize_chunk(type, values.data(), bytes.Data(), 0, count / row_size, row_size, nullptr);
  bytes.Set("type", Napi::Number::New(env, static_cast<int>(type)));
  return bytes;
}

// { files, scales }
std::vector<training::MergedAdapter> MergedAdapters(Napi::Env env, const Fields& given) {
  const std::vector<std::string> files = given.Texts("files");
  const std::vector<float> scales = given.Floats("scales");
  if (files.size() != scales.size()) RefuseField(env, "scales", "one of each file");
  std::vector<training::MergedAdapter> adapters;
  for (size_t i = 0; i < files.size(); ++i) adapters.push_back({files[i], scales[i]});
  return adapters;
}

// appendTensors({ model, files, scales, names, pairedHeads, offsets, type, threads, to }) -> Promise<void>
Napi::Value AppendTensors(const Napi::CallbackInfo& info) {
  const Fields given(info[0]);
  RequireLibrary(info.Env());
  const std::vector<std::string> names = given.Texts("names");
  const std::vector<int32_t> heads = given.Integers("pairedHeads");
  const std::vector<float> offsets = given.Floats("offsets");
  if (heads.size() != names.size() || offsets.size() != names.size())
    RefuseField(info.Env(), "names", "as many as pairedHeads and offsets");
  std::vector<training::PlainTensor> tensors;
  for (size_t i = 0; i < names.size(); ++i) tensors.push_back({names[i], heads[i], offsets[i]});
  return AsyncTask::Run(
      info.Env(), [model = given.Text("model"), adapters = MergedAdapters(info.Env(), given), tensors, type = given.Text("type"),
                   threads = given.Integer("threads", 1, 512), to = given.Text("to")] {
        training::AppendTensors(model, adapters, tensors, type, threads, to);
      });
}

// mergeModel({ model, files, scales, types: 'same' | 'wide' | 'widest', textKeys, texts, numberKeys, numbers, threads, to }) -> Promise<void>
// The keys and their values are entries that the header gets.
Napi::Value MergeModel(const Napi::CallbackInfo& info) {
  const Fields given(info[0]);
  RequireLibrary(info.Env());
  const std::string name = given.Text("types");
  const auto types = name == "same"   ? training::MergedTypes::kSame
                     : name == "wide" ? training::MergedTypes::kWide
                                      : training::MergedTypes::kWidest;
  training::HeaderEntries entries{given.Texts("textKeys"), given.Texts("texts"), given.Texts("numberKeys"), given.Floats("numbers")};
  if (entries.text_keys.size() != entries.texts.size() || entries.number_keys.size() != entries.numbers.size())
    RefuseField(info.Env(), "texts", "a text for each of textKeys, and a number for each of numberKeys");
  return AsyncTask::Run(info.Env(), [model = given.Text("model"), adapters = MergedAdapters(info.Env(), given), types, entries,
                                     threads = given.Integer("threads", 1, 512), to = given.Text("to")] {
    training::MergeModel(model, adapters, types, entries, threads, to);
  });
}

// quantizeModel({ model, fileType, threads, to }) -> Promise<void>
Napi::Value QuantizeModel(const Napi::CallbackInfo& info) {
  const Fields given(info[0]);
  RequireLibrary(info.Env());
  return AsyncTask::Run(info.Env(), [model = given.Text("model"), file_type = given.Integer("fileType", 0, 1000),
                                     threads = given.Integer("threads", 1, 512), to = given.Text("to")] {
    training::QuantizeModel(model, file_type, threads, to);
  });
}

}  // namespace

void RegisterTrainer(Napi::Env env, Napi::Object exports) {
  exports.Set("openTrainer", Napi::Function::New(env, OpenTrainer, "openTrainer"));
  exports.Set("trainedModules", Napi::Function::New(env, TrainedModules, "trainedModules"));
  exports.Set("trainingBytes", Napi::Function::New(env, TrainingBytes, "trainingBytes"));
  exports.Set("whyNotTrainable", Napi::Function::New(env, WhyNotTrainable, "whyNotTrainable"));
  exports.Set("appendTensors", Napi::Function::New(env, AppendTensors, "appendTensors"));
  exports.Set("mergeModel", Napi::Function::New(env, MergeModel, "mergeModel"));
  exports.Set("quantizeModel", Napi::Function::New(env, QuantizeModel, "quantizeModel"));
  exports.Set("quantizeRows", Napi::Function::New(env, QuantizeRows, "quantizeRows"));
}

}  // namespace onpolicy
