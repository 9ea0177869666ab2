// The engine's side of the addon: libraries, models, contexts. Thin: checks arguments, forwards, builds results.
#include <napi.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "llama/context.h"
#include "llama/model.h"
#include "napi/async-task.h"
#include "napi/environment.h"
#include "napi/options.h"
#include "napi/register.h"
#include "napi/rows.h"
#include "napi/sampler.h"

namespace onpolicy {
namespace {

uint32_t ReadUint(const Napi::Object& object, const char* name, uint32_t fallback) {
  const Napi::Value value = object.Get(name);
  if (value.IsUndefined()) return fallback;
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : -1;
  if (!(number >= 0 && number <= 4294967295.0 && number == static_cast<uint32_t>(number)))
    throw Napi::RangeError::New(object.Env(), std::string(name) + ": expected an integer from 0 to 4294967295");
  return static_cast<uint32_t>(number);
}

std::string ReadString(const Napi::CallbackInfo& info, size_t index, const char* name) {
  if (info.Length() <= index || !info[index].IsString())
    throw Napi::TypeError::New(info.Env(), std::string(name) + ": expected a string");
  return info[index].As<Napi::String>().Utf8Value();
}

// ---- Model ----

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
    const Status status = Require(info.Env())->Tokenize(ReadString(info, 0, "text"), info[1].ToBoolean(),
                                                        info[2].ToBoolean(), &ids);
    if (!status.ok()) throw ToError(info.Env(), status);
    return ToTyped<Napi::Int32Array>(info.Env(), ids);
  }

  Napi::Value TokenizeLong(const Napi::CallbackInfo& info) {
    auto ids = std::make_shared<std::vector<int32_t>>();
    auto work = [ids, model = Require(info.Env()), text = ReadString(info, 0, "text"),
                 add_special = info[1].ToBoolean().Value(), parse_special = info[2].ToBoolean().Value()] {
      return model->Tokenize(text, add_special, parse_special, ids.get());
    };
    return AsyncTask::Run(info.Env(), info.This().As<Napi::Object>(), std::move(work),
                          [ids](Napi::Env env) { return ToTyped<Napi::Int32Array>(env, *ids); });
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
  object.Set("hasRecurrentState", api.llama_model_is_recurrent(raw) || api.llama_model_is_hybrid(raw));
  object.Set("kvNumberBytes", model->is_f32() ? 4 : 2);
  object.Set("slidingWindow", api.llama_model_n_swa(raw));
  object.Set("sizeBytes", static_cast<double>(api.llama_model_size(raw)));
  object.Set("parameters", static_cast<double>(api.llama_model_n_params(raw)));
  object.Set("chatTemplate", model->ChatTemplate(nullptr));
  object.Set("toolTemplate", model->ChatTemplate("tool_use"));
  object.Set("bosId", api.llama_vocab_bos(model->vocab()));
  object.Set("eosId", api.llama_vocab_eos(model->vocab()));
  object.Set("addsBos", static_cast<bool>(api.llama_vocab_get_add_bos(model->vocab())));
  object.Set("tokenBytes", ToTyped<Napi::Uint8Array>(env, table.bytes));
  object.Set("tokenOffsets", ToTyped<Napi::Int32Array>(env, table.offsets));
  object.Set("isSpecial", ToTyped<Napi::Uint8Array>(env, table.is_special));
  object.Set("isEnd", ToTyped<Napi::Uint8Array>(env, table.is_end));
  object.Set("isAdded", ToTyped<Napi::Uint8Array>(env, table.is_added));
  Napi::Object metadata = Napi::Object::New(env);
  for (const auto& [key, value] : model->Metadata()) metadata.Set(key, value);
  object.Set("metadata", metadata);
  return object;
}

// loadModel({ path, useGpu, gpuLayers, onProgress, cancelled: Int32Array(1) }) -> Promise<Model>
// `cancelled[0]` set to 1 stops the load.
Napi::Value LoadModel(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  if (!IsLibraryOpen()) throw ToError(env, Status::Fail("NATIVE_UNAVAILABLE", "no library is open"));
  const auto options = info[0].As<Napi::Object>();
  auto request = std::make_shared<ModelOptions>();
  request->path = options.Get("path").As<Napi::String>().Utf8Value();
  request->use_gpu = options.Get("useGpu").ToBoolean();
  if (options.Get("gpuLayers").IsNumber()) request->gpu_layers = options.Get("gpuLayers").As<Napi::Number>().Int32Value();
  auto reporter = std::make_shared<ProgressReporter>(env, options.Get("onProgress"));
  auto cancelled = options.Get("cancelled").As<Napi::Int32Array>();
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

// ---- Context ----

// The thread of one context: takes steps in order and settles their promises on the JavaScript thread.
class StepThread : public std::enable_shared_from_this<StepThread> {
 public:
  struct Job {
    std::function<Status(Context&)> work;              // on the thread
    std::function<Napi::Value(Napi::Env)> finish;      // builds what the promise resolves with
    Napi::Promise::Deferred deferred;
    Status status;
    std::shared_ptr<StepThread> owner;  // outlives the thread until the promise is settled
  };

  StepThread(Napi::Env env, std::shared_ptr<Context> context) : context_(std::move(context)) {
    settle_ = Napi::ThreadSafeFunction::New(env, Napi::Function::New(env, [](const Napi::CallbackInfo&) {}),
                                            "onpolicy step", 0, 1);
    settle_.Unref(env);
    thread_ = std::thread([this] { Serve(); });
  }

  ~StepThread() { Stop(); }

  Napi::Promise Push(Napi::Env env, std::function<Status(Context&)> work, std::function<Napi::Value(Napi::Env)> finish) {
    auto job = std::make_unique<Job>(
        Job{std::move(work), std::move(finish), Napi::Promise::Deferred::New(env), Status::Ok(), shared_from_this()});
    const Napi::Promise promise = job->deferred.Promise();
    if (pending_++ == 0) settle_.Ref(env);  // a running step keeps the process alive, an idle context does not
    {
      std::lock_guard<std::mutex> lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    wake_.notify_one();
    return promise;
  }

  // The context while no job waits or runs, else null.
  Context* Idle() const { return pending_ == 0 ? context_.get() : nullptr; }

  // Ends the running step and the thread. Jobs that wait are rejected by the thread as CLOSED.
  void Stop() {
    if (!thread_.joinable()) return;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    context_->Abort();
    wake_.notify_one();
    thread_.join();
    settle_.Release();
    context_.reset();
  }

  void Abort() {
    if (context_) context_->Abort();
  }

 private:
  void Serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      std::unique_ptr<Job> job = std::move(jobs_.front());
      jobs_.pop_front();
      const bool closed = stopping_;
      lock.unlock();
      if (closed) {
        job->status = Status::Fail("CLOSED", "the context was closed");
      } else {
        Run(*job);
      }
      Job* raw = job.release();
      const napi_status queued = settle_.BlockingCall(raw, [](Napi::Env env, Napi::Function, Job* job) {
        if (env != nullptr) SettleIfAlive([env, job] { job->owner->Settle(env, job); });
        delete job;
      });
      if (queued != napi_ok) delete raw;
      lock.lock();
    }
  }

  void Run(Job& job) {
    try {
      job.status = job.work(*context_);
    } catch (const std::bad_alloc&) {
      job.status = Status::Fail("OUT_OF_MEMORY", "not enough memory for a step");
    } catch (const std::exception& error) {
      job.status = Status::Fail("BACKEND_FAILED", error.what());
    } catch (...) {
      job.status = Status::Fail("BACKEND_FAILED", "unknown native failure in a step");
    }
  }

  void Settle(Napi::Env env, Job* job) {
    Napi::HandleScope scope(env);
    if (--pending_ == 0) settle_.Unref(env);
    if (!job->status.ok()) {
      job->deferred.Reject(ToError(env, job->status).Value());
      return;
    }
    try {
      job->deferred.Resolve(job->finish(env));
    } catch (const Napi::Error& error) {
      job->deferred.Reject(error.Value());
    }
  }

  std::shared_ptr<Context> context_;
  Napi::ThreadSafeFunction settle_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::unique_ptr<Job>> jobs_;
  bool stopping_ = false;
  int pending_ = 0;  // on the JavaScript thread only
};

class JsContext : public Napi::ObjectWrap<JsContext> {
 public:
  static Napi::Function Define(Napi::Env env) {
    return DefineClass(env, "Context",
                       {InstanceMethod<&JsContext::Step>("step"), InstanceMethod<&JsContext::ReadRow>("readRow"),
                        InstanceMethod<&JsContext::WriteRow>("writeRow"),
                        InstanceMethod<&JsContext::SaveSequence>("saveSequence"),
                        InstanceMethod<&JsContext::LoadSequence>("loadSequence"),
                        InstanceMethod<&JsContext::LoadAdapter>("loadAdapter"),
                        InstanceMethod<&JsContext::FreeAdapter>("freeAdapter"),
                        InstanceMethod<&JsContext::Finish>("finish"), InstanceMethod<&JsContext::Abort>("abort"),
                        InstanceMethod<&JsContext::Close>("close")});
  }

  explicit JsContext(const Napi::CallbackInfo& info) : Napi::ObjectWrap<JsContext>(info), env_(info.Env()) {}

  ~JsContext() override { Shut(); }

  void Start(std::shared_ptr<Context> context, ContextOptions options, int32_t vocab_size) {
    options_ = options;
    vocab_size_ = vocab_size;
    thread_ = std::make_shared<StepThread>(env_, std::move(context));
    napi_add_env_cleanup_hook(env_, OnExit, this);
    Environment::Of(env_).AddThread(this, [this] { Shut(); });
  }

 private:
  static void OnExit(void* self) { static_cast<JsContext*>(self)->Shut(); }

  // The thread, which is the caller's to stop from here on; null when there is none any more.
  std::shared_ptr<StepThread> TakeThread() {
    if (!thread_) return nullptr;
    napi_remove_env_cleanup_hook(env_, OnExit, this);
    Environment::Of(env_).RemoveThread(this);
    return std::move(thread_);
  }

  void Shut() {
    if (const std::shared_ptr<StepThread> thread = TakeThread()) thread->Stop();
  }

  void Check(bool condition, const char* message) const {
    if (!condition) throw Napi::RangeError::New(env_, message);
  }

  StepThread& Thread() const {
    if (!thread_) throw ToError(env_, Status::Fail("CLOSED", "the context is closed"));
    return *thread_;
  }

  // step({ adapter, memoryEdits, tokens, positions, sequences, sampleRows, samplers, hooked, scoreRows })
  // -> Promise<{ samples, scores }>
  Napi::Value Step(const Napi::CallbackInfo& info) {
    StepThread& thread = Thread();
    const auto object = info[0].As<Napi::Object>();
    auto job = std::make_shared<std::pair<StepInput, RowsOutput>>();
    StepInput& input = job->first;
    input.adapter = ReadUint(object, "adapter", kNoAdapter);
    input.memory_edits = ReadInts(object, "memoryEdits");
    input.tokens = ReadInts(object, "tokens");
    input.positions = ReadInts(object, "positions");
    input.sequences = ReadInts(object, "sequences");
    input.sample_rows = ReadInts(object, "sampleRows");
    ReadRows(object, vocab_size_, input);
    CheckStep(input);
    return thread.Push(
        env_, [job](Context& context) { return context.Step(job->first, &job->second); },
        [job](Napi::Env env) -> Napi::Value {
          return ToSamplesAndScores(env, job->second);
        });
  }

  // The masked and biased row of the last step's hooked sample `index`.
  float* PreparedRow(Napi::Value index) const {
    Context* context = Thread().Idle();
    if (!context) throw Napi::Error::New(env_, "a step is running");
    float* row = context->PreparedRow(
        static_cast<size_t>(ReadInteger(index, "index", 0, std::numeric_limits<int32_t>::max())));
    Check(row != nullptr, "index: no such row waits");
    return row;
  }

  Napi::Float32Array ReadVocabularyRow(Napi::Value value) const {
    const Napi::Float32Array row = ReadFloat32Array(value, "row");
    Check(row.ElementLength() == static_cast<size_t>(vocab_size_), "row: expected one number per token");
    return row;
  }

  // readRow(index, row: Float32Array): copies the row of the last step's hooked sample `index` out.
  Napi::Value ReadRow(const Napi::CallbackInfo& info) {
    const float* prepared = PreparedRow(info[0]);
    std::copy_n(prepared, vocab_size_, ReadVocabularyRow(info[1]).Data());
    return env_.Undefined();
  }

  // writeRow(index, row: Float32Array): copies it back, edited.
  Napi::Value WriteRow(const Napi::CallbackInfo& info) {
    float* prepared = PreparedRow(info[0]);
    std::copy_n(ReadVocabularyRow(info[1]).Data(), vocab_size_, prepared);
    return env_.Undefined();
  }

  // finish(indices: Int32Array) -> Promise<samples>: samples these hooked rows of the last step.
  Napi::Value Finish(const Napi::CallbackInfo& info) {
    StepThread& thread = Thread();
    const Napi::Int32Array given = ReadInt32Array(info[0], "indices");
    std::vector<int32_t> indices(given.Data(), given.Data() + given.ElementLength());
    for (size_t i = 0; i < indices.size(); ++i)
      Check(indices[i] >= 0 && (i == 0 || indices[i] > indices[i - 1]), "indices: expected ascending numbers");
    auto results = std::make_shared<std::vector<RowResult>>();
    return thread.Push(
        env_,
        [indices = std::move(indices), results](Context& context) { return context.Finish(indices, results.get()); },
        [results](Napi::Env env) -> Napi::Value { return ToRows(env, *results); });
  }

  int32_t ReadSequence(Napi::Value value) const {
    return ReadInteger(value, "sequence", 0, static_cast<int32_t>(options_.max_sequences) - 1);
  }

  // saveSequence(sequence) -> Promise<Uint8Array>: its whole cache.
  Napi::Value SaveSequence(const Napi::CallbackInfo& info) {
    auto state = std::make_shared<std::vector<uint8_t>>();
    const int32_t sequence = ReadSequence(info[0]);
    return Thread().Push(
        env_, [sequence, state](Context& context) { return context.SaveSequence(sequence, state.get()); },
        [state](Napi::Env env) -> Napi::Value { return ToTyped<Napi::Uint8Array>(env, *state); });
  }

  // loadSequence(memoryEdits, sequence, state: Uint8Array) -> Promise<void>
  Napi::Value LoadSequence(const Napi::CallbackInfo& info) {
    const Napi::Int32Array given = ReadInt32Array(info[0], "memoryEdits");
    std::vector<int32_t> edits(given.Data(), given.Data() + given.ElementLength());
    CheckEdits(edits);
    const int32_t sequence = ReadSequence(info[1]);
    const auto bytes = ReadArray<Napi::Uint8Array>(info[2], napi_uint8_array, "state", "a Uint8Array");
    std::vector<uint8_t> state(bytes.Data(), bytes.Data() + bytes.ElementLength());
    return Thread().Push(
        env_,
        [edits = std::move(edits), sequence, state = std::move(state)](Context& context) {
          return context.LoadSequence(edits, sequence, state);
        },
        [](Napi::Env env) -> Napi::Value { return env.Undefined(); });
  }

  // loadAdapter(path) -> Promise<number>, by which steps name it.
  Napi::Value LoadAdapter(const Napi::CallbackInfo& info) {
    auto adapter = std::make_shared<uint32_t>(kNoAdapter);
    return Thread().Push(
        env_,
        [path = ReadString(info, 0, "path"), adapter](Context& context) {
          return context.LoadAdapter(path, adapter.get());
        },
        [adapter](Napi::Env env) -> Napi::Value { return Napi::Number::New(env, *adapter); });
  }

  // freeAdapter(number) -> Promise<void>
  Napi::Value FreeAdapter(const Napi::CallbackInfo& info) {
    const auto adapter =
        static_cast<uint32_t>(ReadInteger(info[0], "adapter", 1, std::numeric_limits<int32_t>::max()));
    return Thread().Push(
        env_,
        [adapter](Context& context) {
          context.FreeAdapter(adapter);
          return Status::Ok();
        },
        [](Napi::Env env) -> Napi::Value { return env.Undefined(); });
  }

  void CheckEdits(const std::vector<int32_t>& edits) const {
    const auto sequences = static_cast<int32_t>(options_.max_sequences);
    Check(edits.size() % 5 == 0, "memoryEdits: expected five numbers per edit");
    for (size_t i = 0; i < edits.size(); i += 5) {
      const int32_t* edit = &edits[i];
      Check(edit[0] == kMemoryRemove || edit[0] == kMemoryCopy, "memoryEdits: unknown kind");
      Check(edit[1] >= 0 && edit[1] < sequences && edit[2] >= 0 && edit[2] < sequences,
            "memoryEdits: sequence out of range");
    }
  }

  void CheckStep(const StepInput& input) const {
    const auto count = static_cast<int32_t>(input.tokens.size());
    const auto sequences = static_cast<int32_t>(options_.max_sequences);
    Check(input.tokens.size() <= options_.batch_tokens, "tokens: more than the context's batch size");
    Check(input.positions.size() == input.tokens.size(), "positions: expected one per token");
    Check(input.sequences.size() == input.tokens.size(), "sequences: expected one per token");
    Check(input.samplers.size() == input.sample_rows.size(), "samplers: expected one per sampled row");
    for (int32_t token : input.tokens) Check(token >= 0 && token < vocab_size_, "tokens: id outside the vocabulary");
    for (int32_t position : input.positions) Check(position >= 0, "positions: expected a number >= 0");
    for (int32_t id : input.sequences) Check(id >= 0 && id < sequences, "sequences: id out of range");
    for (int32_t row : input.sample_rows) Check(row >= 0 && row < count, "sampleRows: index out of range");
    for (size_t i = 0; i < input.score_rows.size(); i += 3)
      Check(input.score_rows[i] >= 0 && input.score_rows[i] < count, "scoreRows: index out of range");
    CheckOutputs(input);
    CheckEdits(input.memory_edits);
  }

  // Different rows that need logits: the engine aborts the process when they are more than it was told.
  void CheckOutputs(const StepInput& input) const {
    std::vector<int32_t> rows = input.sample_rows;
    for (size_t i = 0; i < input.score_rows.size(); i += 3) rows.push_back(input.score_rows[i]);
    std::sort(rows.begin(), rows.end());
    const auto outputs = std::unique(rows.begin(), rows.end()) - rows.begin();
    Check(outputs <= static_cast<std::ptrdiff_t>(std::max(options_.max_outputs, options_.max_sequences)),
          "sampleRows: more rows of logits than the context's maxOutputs");
  }

  Napi::Value Abort(const Napi::CallbackInfo& info) {
    if (thread_) thread_->Abort();
    return info.Env().Undefined();
  }

  // Stops the thread and frees the context off the JavaScript thread.
  Napi::Value Close(const Napi::CallbackInfo& info) {
    auto owned = std::make_shared<std::shared_ptr<StepThread>>(TakeThread());
    return AsyncTask::Run(
        info.Env(), info.This().As<Napi::Object>(),
        [owned] {
          if (*owned) (*owned)->Stop();
          return Status::Ok();
        },
        [owned](Napi::Env env) { return env.Undefined(); });
  }

  Napi::Env env_;
  std::shared_ptr<StepThread> thread_;
  ContextOptions options_;
  int32_t vocab_size_ = 0;
};

// createContext(model, { kvTokens, sharesCells, batchTokens, maxSequences, maxOutputs, threads, fusedAttention }) -> Promise<Context>
Napi::Value CreateContext(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  const auto owner = info[0].As<Napi::Object>();
  std::shared_ptr<Model> model = JsModel::Unwrap(owner)->Require(env);
  const auto object = info[1].As<Napi::Object>();
  ContextOptions options;
  options.kv_tokens = ReadUint(object, "kvTokens", options.kv_tokens);
  options.shares_cells = object.Get("sharesCells").ToBoolean();
  options.batch_tokens = ReadUint(object, "batchTokens", options.batch_tokens);
  options.max_sequences = ReadUint(object, "maxSequences", options.max_sequences);
  options.max_outputs = ReadUint(object, "maxOutputs", options.max_outputs);
  options.threads = static_cast<int32_t>(ReadUint(object, "threads", 1));
  options.fused_attention = object.Get("fusedAttention").ToBoolean();
  auto context = std::make_shared<std::shared_ptr<Context>>();
  return AsyncTask::Run(
      env, owner, [model, options, context] { return Context::Create(model, options, context.get()); },
      [options, context, vocab_size = model->vocab_size()](Napi::Env env) -> Napi::Value {
        Napi::Object object = Environment::Of(env).Construct("Context");
        object.Set("kvTokens", (*context)->kv_tokens());
        JsContext::Unwrap(object)->Start(std::move(*context), options, vocab_size);
        return object;
      });
}

// ---- Libraries ----

// openLibrary(folder, wantedVersion, extraBackends) -> Promise<void>
Napi::Value OpenLibraryAsync(const Napi::CallbackInfo& info) {
  std::vector<std::string> extra;
  const auto list = info[2].As<Napi::Array>();
  for (uint32_t i = 0; i < list.Length(); ++i) extra.push_back(list.Get(i).As<Napi::String>().Utf8Value());
  return AsyncTask::Run(
      info.Env(), list,
      [folder = ReadString(info, 0, "folder"), version = ReadString(info, 1, "version"), extra] {
        return OpenLibrary(folder, version, extra);
      },
      [](Napi::Env env) { return env.Undefined(); });
}

// devices() -> { name, description, kind: 'cpu' | 'gpu' | 'other', freeBytes, totalBytes }[]
Napi::Value Devices(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Napi::Array list = Napi::Array::New(env);
  if (!IsLibraryOpen()) return list;
  const Library& api = Api();
  for (size_t i = 0; i < api.ggml_backend_dev_count(); ++i) {
    ggml_backend_dev_t device = api.ggml_backend_dev_get(i);
    const auto type = api.ggml_backend_dev_type(device);
    size_t free_bytes = 0, total_bytes = 0;
    api.ggml_backend_dev_memory(device, &free_bytes, &total_bytes);
    Napi::Object entry = Napi::Object::New(env);
    entry.Set("name", api.ggml_backend_dev_name(device));
    entry.Set("description", api.ggml_backend_dev_description(device));
    const bool gpu = type == GGML_BACKEND_DEVICE_TYPE_GPU || type == GGML_BACKEND_DEVICE_TYPE_IGPU;
    entry.Set("kind", gpu ? "gpu" : type == GGML_BACKEND_DEVICE_TYPE_CPU ? "cpu" : "other");
    entry.Set("freeBytes", static_cast<double>(free_bytes));
    entry.Set("totalBytes", static_cast<double>(total_bytes));
    list.Set(static_cast<uint32_t>(i), entry);
  }
  return list;
}

// setLog(callback) -> a function that removes it again. The callback gets (level, text) of every engine log line.
Napi::Value SetLog(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  struct Sink {
    Napi::ThreadSafeFunction function;
    int id = 0;
  };
  auto* sink = new Sink;
  sink->function = Napi::ThreadSafeFunction::New(env, info[0].As<Napi::Function>(), "onpolicy log", 0, 1);
  sink->function.Unref(env);
  sink->id = AddLogSink([function = sink->function](int level, const std::string& text) {
    function.NonBlockingCall([level, text](Napi::Env env, Napi::Function callback) {
      try {
        callback.Call({Napi::Number::New(env, level), Napi::String::New(env, text)});
      } catch (const Napi::Error&) {
        // A log callback that throws must not disturb the engine.
      }
    });
  });
  auto remove = [](void* data) {
    auto* sink = static_cast<Sink*>(data);
    RemoveLogSink(sink->id);
    sink->function.Release();
    delete sink;
  };
  napi_add_env_cleanup_hook(env, remove, sink);
  auto removed = std::make_shared<bool>(false);
  return Napi::Function::New(env, [sink, removed, remove](const Napi::CallbackInfo& info) {
    if (*removed) return;
    *removed = true;
    napi_remove_env_cleanup_hook(info.Env(), remove, sink);
    remove(sink);
  });
}

// stopThreads(): ends every thread of this environment. To be called when the process exits: contexts are closed after it.
Napi::Value StopThreads(const Napi::CallbackInfo& info) {
  Environment::Of(info.Env()).StopThreads();
  return info.Env().Undefined();
}

Napi::Value CanOpen(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), CanOpenSystemLibrary(ReadString(info, 0, "name")));
}

}  // namespace

void RegisterEngine(Napi::Env env, Napi::Object exports) {
  Environment::Of(env).AddClass("Model", JsModel::Define(env));
  Environment::Of(env).AddClass("Context", JsContext::Define(env));
  exports.Set("openLibrary", Napi::Function::New(env, OpenLibraryAsync));
  exports.Set("canOpenSystemLibrary", Napi::Function::New(env, CanOpen));
  exports.Set("devices", Napi::Function::New(env, Devices));
  exports.Set("stopThreads", Napi::Function::New(env, StopThreads));
  exports.Set("setLog", Napi::Function::New(env, SetLog));
  exports.Set("loadModel", Napi::Function::New(env, LoadModel));
  exports.Set("createContext", Napi::Function::New(env, CreateContext));
}

}  // namespace onpolicy
