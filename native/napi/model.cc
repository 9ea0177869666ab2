// A GGUF file -> a model that JavaScript holds: its facts, its vocabulary, its tokenizer.
#include "napi/model.h"

#include "napi/arguments.h"
#include "napi/async-task.h"
#include "napi/environment.h"
#include "napi/register.h"

namespace onpolicy {
namespace {

class JsModel : public Napi::ObjectWrap<JsModel> {
 public:
  static Napi::Function Define(Napi::Env env) {
    return DefineClass(env, "Model",
                       {InstanceMethod<&JsModel::Tokenize>("tokenize"),
                        InstanceMethod<&JsModel::TokenizeLong>("tokenizeLong"),
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
    std::vector<int32_t> ids;
    const Status status = Require(info.Env())->Tokenize(ReadText(info[0], "text"), info[1].ToBoolean(),
                                                        info[2].ToBoolean(), &ids);
    if (!status.ok()) throw ToError(info.Env(), status);
    return ToArray(info.Env(), ids);
  }

  Napi::Value TokenizeLong(const Napi::CallbackInfo& info) {
    auto ids = std::make_shared<std::vector<int32_t>>();
    auto work = [ids, model = Require(info.Env()), text = ReadText(info[0], "text"),
                 add_special = info[1].ToBoolean().Value(), parse_special = info[2].ToBoolean().Value()] {
      return model->Tokenize(text, add_special, parse_special, ids.get());
    };
    return AsyncTask::Run(info.Env(), info.This().As<Napi::Object>(), std::move(work),
                          [ids](Napi::Env env) { return ToArray(env, *ids); });
  }

  // Weights are freed when the last context on them is gone too.
  Napi::Value Close(const Napi::CallbackInfo& info) {
    model.reset();
    return info.Env().Undefined();
  }
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
        // A callback that throws must not end the load, and there is nobody to hand its error to.
      }
    });
  }

 private:
  Napi::ThreadSafeFunction function_;
  int last_percent_ = -1;
};

// What a load produces off the JavaScript thread.
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
  object.Set("vocabSize", model->vocab_size());
  object.Set("contextLength", api.llama_model_n_ctx_train(raw));
  object.Set("layers", api.llama_model_n_layer(raw));
  object.Set("embeddingSize", api.llama_model_n_embd(raw));
  object.Set("heads", api.llama_model_n_head(raw));
  object.Set("kvHeads", api.llama_model_n_head_kv(raw));
  object.Set("hasRecurrentState", model->is_recurrent());
  object.Set("hasF32Weights", model->is_f32());
  object.Set("kernels", model->kernels());
  object.Set("slidingWindow", api.llama_model_n_swa(raw));
  object.Set("sizeBytes", static_cast<double>(api.llama_model_size(raw)));
  object.Set("parameters", static_cast<double>(api.llama_model_n_params(raw)));
  object.Set("chatTemplate", model->ChatTemplate(nullptr));
  object.Set("toolTemplate", model->ChatTemplate("tool_use"));
  object.Set("pairTemplate", model->ChatTemplate("rerank"));
  Napi::Array labels = Napi::Array::New(env);
  for (uint32_t i = 0; i < api.llama_model_n_cls_out(raw); ++i)
    if (const char* label = api.llama_model_cls_label(raw, i)) labels.Set(i, label);
  object.Set("labels", labels);
  object.Set("bosId", api.llama_vocab_bos(model->vocab()));
  object.Set("eosId", api.llama_vocab_eos(model->vocab()));
  object.Set("sepId", api.llama_vocab_sep(model->vocab()));
  object.Set("addsBos", static_cast<bool>(api.llama_vocab_get_add_bos(model->vocab())));
  object.Set("addsEos", static_cast<bool>(api.llama_vocab_get_add_eos(model->vocab())));
  object.Set("addsSep", static_cast<bool>(api.llama_vocab_get_add_sep(model->vocab())));
  object.Set("tokenBytes", ToArray(env, table.bytes));
  object.Set("tokenOffsets", ToArray(env, table.offsets));
  object.Set("isSpecial", ToArray(env, table.is_special));
  object.Set("isEnd", ToArray(env, table.is_end));
  object.Set("isAdded", ToArray(env, table.is_added));
  Napi::Object metadata = Napi::Object::New(env);
  for (const auto& [key, value] : model->Metadata()) metadata.Set(key, value);
  object.Set("metadata", metadata);
  return object;
}

matmul::Packs ReadPacks(const std::string& name) {
  if (name == "all") return matmul::Packs::kAll;
  return name == "quantized" ? matmul::Packs::kQuantized : matmul::Packs::kNone;
}

// loadModel({ path, useGpu, gpuLayers, packs, mmap, mlock, onProgress, cancelled: Int32Array(1) }) -> Promise<Model>
// `cancelled[0]` set to 1 stops the load.
Napi::Value LoadModel(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  RequireLibrary(env);
  const Fields options(info[0]);
  auto request = std::make_shared<ModelOptions>();
  request->path = options.Text("path");
  request->use_gpu = options.Flag("useGpu");
  request->packs = ReadPacks(options.Text("packs"));
  if (!IsAbsent(options["devices"])) request->devices = options.Texts("devices");
  if (!IsAbsent(options["tensorSplit"])) request->tensor_split = ReadVector<float>(options["tensorSplit"], "tensorSplit");
  if (!IsAbsent(options["loadHeads"])) request->load_heads = options.Flag("loadHeads");
  if (!IsAbsent(options["mmap"])) request->mmap = options.Flag("mmap");
  if (!IsAbsent(options["mlock"])) request->mlock = options.Flag("mlock");
  if (options["gpuLayers"].IsNumber()) request->gpu_layers = options["gpuLayers"].As<Napi::Number>().Int32Value();
  auto reporter = std::make_shared<ProgressReporter>(env, options["onProgress"]);
  auto cancelled = ReadArray<int32_t>(options["cancelled"], "cancelled");
  // Read from the loading thread; the array is kept alive as the task's owner.
  const volatile int32_t* flag = cancelled.Data();
  request->on_progress = [reporter, flag, ending = Environment::Of(env).ending()](float fraction) {
    reporter->Report(fraction);
    return *flag == 0 && !*ending;
  };
  auto loaded = std::make_shared<LoadedModel>();
  auto work = [request, loaded] {
    const Status status = Model::Load(*request, &loaded->model);
    if (status.ok()) loaded->table = loaded->model->Table();
    return status;
  };
  return AsyncTask::Run(env, cancelled, std::move(work),
                        [loaded](Napi::Env env) -> Napi::Value { return DescribeModel(env, *loaded); });
}

// modelTokens(model) -> Promise<{ bytes, offsets, ends, specials, mergesById }>: its vocabulary as grammars need it.
Napi::Value ModelTokens(const Napi::CallbackInfo& info) {
  return AsyncTask::Run(
      info.Env(), [model = RequireModel(info[0].As<Napi::Object>())] { return model->TokensForConstraints(); },
      [](Napi::Env env, const ConstraintTokens& tokens) {
        Napi::Object object = Napi::Object::New(env);
        object.Set("bytes", ToArray(env, tokens.bytes));
        object.Set("offsets", ToArray(env, tokens.offsets));
        object.Set("ends", ToArray(env, tokens.ends));
        object.Set("specials", ToArray(env, tokens.specials));
        object.Set("mergesById", tokens.merges_by_id);
        return object;
      });
}

}  // namespace

void RequireLibrary(Napi::Env env) {
  if (!IsLibraryOpen()) throw ToError(env, Status::Fail("NATIVE_UNAVAILABLE", "the engine's libraries are not open"));
}

void RegisterModel(Napi::Env env, Napi::Object exports) {
  Environment::Of(env).AddClass("Model", JsModel::Define(env));
  exports.Set("loadModel", Napi::Function::New<LoadModel>(env, "loadModel"));
  exports.Set("modelTokens", Napi::Function::New<ModelTokens>(env, "modelTokens"));
}

std::shared_ptr<Model> RequireModel(Napi::Object object) { return JsModel::Unwrap(object)->Require(object.Env()); }

}  // namespace onpolicy
