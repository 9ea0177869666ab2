// Steps of a context: checks what JavaScript asks for, hands it to the step thread, builds what comes back.
#include "napi/context.h"

#include <algorithm>
#include <limits>

#include "llama/context.h"
#include "napi/environment.h"
#include "napi/model.h"
#include "napi/options.h"
#include "napi/rows.h"
#include "napi/step-thread.h"

namespace onpolicy {
namespace {

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

  // step({ adapter, memoryEdits, tokens, positions, sequences, sampleRows, samplers, hooked, scoreRows, mayRunAhead })
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
    input.may_run_ahead = object.Get("mayRunAhead").ToBoolean();
    CheckStep(input);
    const Context* idle = thread.Idle();
    return thread.Push(
        env_, [job](Context& context) { return context.Step(job->first, &job->second); },
        [job](Napi::Env env) -> Napi::Value {
          return ToSamplesAndScores(env, job->second);
        },
        idle && idle->IsAhead(input));
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

}  // namespace

Napi::Function DefineContext(Napi::Env env) { return JsContext::Define(env); }

Napi::Value CreateContext(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  const auto owner = info[0].As<Napi::Object>();
  std::shared_ptr<Model> model = RequireModel(owner);
  const auto object = info[1].As<Napi::Object>();
  ContextOptions options;
  options.kv_tokens = ReadUint(object, "kvTokens", options.kv_tokens);
  options.is_kv_unified = object.Get("isKvUnified").ToBoolean();
  options.batch_tokens = ReadUint(object, "batchTokens", options.batch_tokens);
  options.max_sequences = ReadUint(object, "maxSequences", options.max_sequences);
  options.max_outputs = ReadUint(object, "maxOutputs", options.max_outputs);
  options.threads = static_cast<int32_t>(ReadUint(object, "threads", 1));
  options.fused_attention = object.Get("fusedAttention").ToBoolean();
  options.cache_bits = ReadUint(object, "cacheBits", options.cache_bits);
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

}  // namespace onpolicy
