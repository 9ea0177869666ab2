// A GGUF file -> a model that JavaScript holds: its facts, its vocabulary, its tokenizer.
#include "addon/arguments.h"
#include "addon/async-task.h"
#include "addon/environment.h"
#include "addon/handle.h"
#include "addon/register.h"
#include "addon/unwrap.h"
#include "engine/model-tokenizer.h"

namespace onpolicy {
namespace {

class JsModel : public Napi::ObjectWrap<JsModel> {
 public:
  static Napi::Function Define(Napi::Env env) {
    return DefineClass(env, "Model",
                       {InstanceMethod<&JsModel::Tokenize>("tokenize"),
                        InstanceMethod<&JsModel::TokenizeLong>("tokenizeLong"),
                        InstanceAccessor<&JsModel::Attention>("attention"),
                        InstanceMethod<&JsModel::Close>("close")});
  }

  explicit JsModel(const Napi::CallbackInfo& info) : Napi::ObjectWrap<JsModel>(info) {}

  std::shared_ptr<Model> model;  // null after close

  std::shared_ptr<Model> Require(Napi::Env env) const {
    if (!model) throw ToError(env, Status::Fail("CLOSED", "the model is closed"));
    return model;
  }

 private:
  Napi::Value Tokenize(const Napi::CallbackInfo& info) {
    try {
      return ToArray(info.Env(), Require(info.Env())->Tokenize(ReadText(info[0], "text"), info[1].ToBoolean(), info[2].ToBoolean()));
    } catch (const Failure& failure) {
      throw ToError(info.Env(), failure.status());
    }
  }

  Napi::Value TokenizeLong(const Napi::CallbackInfo& info) {
    auto work = [model = Require(info.Env()), text = ReadText(info[0], "text"), add_special = info[1].ToBoolean().Value(),
                 parse_special = info[2].ToBoolean().Value()] { return model->Tokenize(text, add_special, parse_special); };
    return AsyncTask::Run(info.Env(), info.This().As<Napi::Object>(), std::move(work), ToArray<int32_t>);
  }

  // Kernels of attention; null before the first pass.
  Napi::Value Attention(const Napi::CallbackInfo& info) {
    const char* kernels = model ? model->attention() : nullptr;
    return kernels ? Napi::Value(Napi::String::New(info.Env(), kernels)) : info.Env().Null();
  }

  // The weights are freed with the last context that uses them.
  void Close(const Napi::CallbackInfo&) { model.reset(); }
};

// Calls a JavaScript function with a load's progress; the load runs on another thread.
class ProgressReporter {
 public:
  ProgressReporter(Napi::Env env, const Napi::Value& callback) {
    if (callback.IsFunction())
      function_ = Napi::ThreadSafeFunction::New(env, callback.As<Napi::Function>(), "onpolicy load progress", 0, 1);
  }
  ~ProgressReporter() {
    if (function_) function_.Release();
  }
  void Report(float fraction) {
    const int percent = static_cast<int>(fraction * 100);
    if (!function_ || percent == last_percent_) return;
    last_percent_ = percent;
    function_.NonBlockingCall([fraction](Napi::Env env, Napi::Function callback) {
      try {
        callback.Call({Napi::Number::New(env, fraction)});
      } catch (const Napi::Error&) {
        // A callback that throws must not end the load. No caller could receive its error.
      }
    });
  }

 private:
  Napi::ThreadSafeFunction function_;
  int last_percent_ = -1;
};

// Result of loading a model off the JavaScript thread.
struct LoadedModel {
  std::shared_ptr<Model> model;
  VocabularyTable table;
};

Napi::Object DescribeModel(Napi::Env env, const LoadedModel& loaded) {
  const Library& api = Api();
  const auto& [model, table] = loaded;
  llama_model* raw = model->get();
  Napi::Object object = Environment::Of(env).Construct("Model");
  JsModel::Unwrap(object)->model = model;
  const llama_vocab* vocab = model->vocab();
  Napi::Array labels = Napi::Array::New(env);
  for (uint32_t i = 0; i < api.llama_model_n_cls_out(raw); ++i)
    if (const char* label = api.llama_model_cls_label(raw, i)) labels.Set(i, label);
  SetFields(object, "vocabSize", model->vocab_size(), "contextLength", api.llama_model_n_ctx_train(raw), "hasRecurrentState",
            model->is_recurrent(), "hasF32Weights", model->is_f32(), "kernels", model->kernels(), "slidingWindow",
            api.llama_model_n_swa(raw), "sizeBytes", api.llama_model_size(raw), "parameters", api.llama_model_n_params(raw));
  SetFields(object, "chatTemplate", model->ChatTemplate(nullptr), "toolTemplate", model->ChatTemplate("tool_use"), "pairTemplate",
            model->ChatTemplate("rerank"), "labels", labels);
  SetFields(object, "bosId", api.llama_vocab_bos(vocab), "eosId", api.llama_vocab_eos(vocab), "sepId", api.llama_vocab_sep(vocab),
            "addsBos", api.llama_vocab_get_add_bos(vocab), "addsEos", api.llama_vocab_get_add_eos(vocab), "addsSep",
            api.llama_vocab_get_add_sep(vocab));
  SetFields(object, "tokenBytes", table.bytes, "tokenOffsets", table.offsets, "isSpecial", table.is_special, "isEnd", table.is_end);
  Napi::Object metadata = Napi::Object::New(env);
  for (const auto& [key, value] : model->Metadata()) metadata.Set(key, value);
  object.Set("metadata", metadata);
  return object;
}

// loadModel({ path, useGpu, gpuLayers, cpuTensors, packs, isUnfused, mmap, mlock, onProgress, cancelled: Int32Array(1) }) -> Promise<Model>
// `cancelled[0]` set to 1 stops the load.
Napi::Value LoadModel(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  RequireLibrary(env);
  const Fields options(info[0]);
  auto request = std::make_shared<ModelOptions>();
  request->path = options.Text("path");
  request->use_gpu = options.Flag("useGpu");
  request->packs = options.Flag("packs");
  request->is_unfused = options.Flag("isUnfused");
  if (options.Has("cpuTensors")) request->cpu_tensors = options.Text("cpuTensors");
  if (options.Has("devices")) request->devices = options.Texts("devices");
  if (options.Has("tensorSplit")) request->tensor_split = options.Floats("tensorSplit");
  request->load_heads = options.Flag("loadHeads");
  if (options.Has("mmap")) request->mmap = options.Flag("mmap");
  request->mlock = options.Flag("mlock");
  if (options.Has("gpuLayers")) request->gpu_layers = options.Integer("gpuLayers", INT32_MIN);
  auto reporter = std::make_shared<ProgressReporter>(env, options["onProgress"]);
  auto cancelled = ReadArray<int32_t>(options["cancelled"], "cancelled");
  // Read from the loading thread; the array is kept alive as the task's owner.
  const volatile int32_t* flag = cancelled.Data();
  request->on_progress = [reporter, flag, ending = Environment::Of(env).ending()](float fraction) {
    reporter->Report(fraction);
    return *flag == 0 && !*ending;
  };
  return AsyncTask::Run(
      env, cancelled,
      [request] {
        std::shared_ptr<Model> model = Model::Load(*request);
        VocabularyTable table = model->Table();
        return LoadedModel{std::move(model), std::move(table)};
      },
      DescribeModel);
}

Napi::Value WrapTokenizer(Napi::Env env, std::shared_ptr<const TextTokenizer> tokenizer) {
  return WrapShared(env, kTokenizerTag, std::move(tokenizer));
}

// modelTokens(model) -> Promise<{ bytes, offsets, ends, specials, tokenizer }>: its vocabulary in the form of grammars.
Napi::Value ModelTokens(const Napi::CallbackInfo& info) {
  const std::shared_ptr<Model> model = RequireModel(info[0].As<Napi::Object>());
  return AsyncTask::Run(
      info.Env(), [model] { return model->TokensForConstraints(); },
      [model = std::weak_ptr(model)](Napi::Env env, const ConstraintTokens& tokens) {
        return ObjectOf(env, "bytes", tokens.bytes, "offsets", tokens.offsets, "ends", tokens.ends, "specials", tokens.specials,
                        "tokenizer", WrapTokenizer(env, std::make_shared<ModelTokenizer>(model)));
      });
}

// openTokenizer(path) -> Promise of a handle: the tokenizer of a GGUF file, without its weights.
Napi::Value OpenTokenizer(const Napi::CallbackInfo& info) {
  RequireLibrary(info.Env());
  ModelOptions options;
  options.path = ReadText(info[0], "path");
  options.vocab_only = true;
  return AsyncTask::Run(
      info.Env(),
      [options] {
        std::shared_ptr<Model> model = Model::Load(options);
        return std::make_shared<ModelTokenizer>(model, model);
      },
      WrapTokenizer);
}

}  // namespace

void RequireLibrary(Napi::Env env) {
  if (!IsLibraryOpen()) throw ToError(env, Status::Fail("NATIVE_UNAVAILABLE", "the engine's libraries are not open"));
}

void RegisterModel(Napi::Env env, Napi::Object exports) {
  Environment::Of(env).AddClass("Model", JsModel::Define(env));
  exports.Set("loadModel", Napi::Function::New<LoadModel>(env, "loadModel"));
  exports.Set("modelTokens", Napi::Function::New<ModelTokens>(env, "modelTokens"));
  exports.Set("openTokenizer", Napi::Function::New<OpenTokenizer>(env, "openTokenizer"));
}

std::shared_ptr<Model> RequireModel(Napi::Object object) { return JsModel::Unwrap(object)->Require(object.Env()); }

}  // namespace onpolicy
