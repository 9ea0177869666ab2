// A step that JavaScript asks for -> checked input for the step thread -> its results.
#include <algorithm>

#include "addon/environment.h"
#include "addon/register.h"
#include "addon/rows.h"
#include "addon/step-thread.h"
#include "addon/unwrap.h"
#include "engine/context.h"

namespace onpolicy {
namespace {

Napi::Object ToResult(Napi::Env env, const StepOutput& output) {
  Napi::Object result = ToSamplesAndScores(env, output);
  const auto& [layers, used, ids] = output.experts;
  if (!ids.empty()) result.Set("experts", ObjectOf(env, "layers", layers, "used", used, "ids", ids));
  return result;
}

class JsContext : public Napi::ObjectWrap<JsContext> {
 public:
  static Napi::Function Define(Napi::Env env) {
    return DefineClass(env, "Context",
                       {InstanceMethod<&JsContext::Step>("step"), InstanceMethod<&JsContext::ReadRow>("readRow"),
                        InstanceMethod<&JsContext::WriteRow>("writeRow"),
                        InstanceMethod<&JsContext::SaveCheckpoint>("saveCheckpoint"),
                        InstanceMethod<&JsContext::SaveSequence>("saveSequence"),
                        InstanceMethod<&JsContext::LoadSequence>("loadSequence"),
                        InstanceMethod<&JsContext::LoadAdapter>("loadAdapter"),
                        InstanceMethod<&JsContext::MixAdapters>("mixAdapters"),
                        InstanceMethod<&JsContext::FreeAdapter>("freeAdapter"),
                        InstanceAccessor<&JsContext::Threads>("threads"),
                        InstanceMethod<&JsContext::AttachHead>("attachHead"),
                        InstanceMethod<&JsContext::DetachHead>("detachHead"),
                        InstanceMethod<&JsContext::Finish>("finish"), InstanceMethod<&JsContext::Abort>("abort"),
                        InstanceMethod<&JsContext::Close>("close")});
  }

  explicit JsContext(const Napi::CallbackInfo& info) : Napi::ObjectWrap<JsContext>(info), env_(info.Env()) {}

  ~JsContext() override { Shut(); }

  void Start(std::shared_ptr<Context> context, ContextOptions options, int32_t vocab_size, int32_t row_size) {
    options_ = options;
    vocab_size_ = vocab_size;
    row_size_ = row_size;
    thread_ = std::make_shared<StepThread>(env_, std::move(context));
    napi_add_env_cleanup_hook(env_, OnExit, this);
    Environment::Of(env_).AddThread(this, [this] { Shut(); });
  }

 private:
  static void OnExit(void* self) { static_cast<JsContext*>(self)->Shut(); }

  // Returns the thread to the caller, who stops it. Returns null after the first call.
  std::shared_ptr<StepThread> TakeThread() {
    if (!thread_) return nullptr;
    napi_remove_env_cleanup_hook(env_, OnExit, this);
    Environment::Of(env_).RemoveThread(this);
    return std::move(thread_);
  }

  void Shut() {
    if (const std::shared_ptr<StepThread> thread = TakeThread()) thread->Stop();
  }

  StepThread& Thread() const {
    if (!thread_) throw ToError(env_, Status::Fail("CLOSED", "the context is closed"));
    return *thread_;
  }

  // step({ adapter, memoryEdits, tokens, positions, sequences, followed, sampleRows, samplers, matchers, drafts, hooked, scoreRows,
  // mayRunAhead, recordsExperts, media })
  // -> Promise<{ samples, scores, experts }>
  Napi::Value Step(const Napi::CallbackInfo& info) {
    StepThread& thread = Thread();
    const Fields step(info[0], "step");
    auto input = std::make_shared<StepInput>();
    input->adapter = step.UnsignedOr("adapter", kNoAdapter);
    input->memory_edits = step.IntegersOrNone("memoryEdits");
    input->tokens = step.IntegersOrNone("tokens");
    input->positions = step.IntegersOrNone("positions");
    input->sequences = step.IntegersOrNone("sequences");
    input->sample_rows = step.IntegersOrNone("sampleRows");
    input->followed = step.IntegersOrNone("followed");
    ReadRows(step, vocab_size_, *input);
    input->may_run_ahead = step.Flag("mayRunAhead");
    input->records_experts = step.Flag("recordsExperts");
    if (step.Has("media")) input->media = ReadMediaRows(step["media"]);
    CheckStep(*input);
    const std::shared_ptr<const Context> idle = thread.Idle();
    return thread.Push(env_, [input](Context& context) { return context.Step(*input); }, ToResult, idle && idle->IsAhead(*input));
  }

  std::shared_ptr<Context> IdleContext() const {
    std::shared_ptr<Context> context = Thread().Idle();
    if (!context) Refuse(env_, "a step is running");
    return context;
  }

  // readRow(index, row: Float32Array): copies the row of the last step's hooked sample `index` out.
  void ReadRow(const Napi::CallbackInfo& info) { CopyOut(IdleContext()->rows(), info); }
  // writeRow(index, row: Float32Array): copies it back, edited.
  void WriteRow(const Napi::CallbackInfo& info) { CopyIn(IdleContext()->rows(), info); }

  // finish(indices: Int32Array) -> Promise<samples>: samples these hooked rows of the last step and returns all samples of the step.
  Napi::Value Finish(const Napi::CallbackInfo& info) {
    return Thread().Push(env_, [indices = ReadIndices(info[0])](Context& context) { return context.rows().Finish(indices); }, ToRows);
  }

  int32_t ReadSequence(Napi::Value value) const {
    return ReadInteger(value, "sequence", 0, static_cast<int32_t>(options_.max_sequences) - 1);
  }

  std::vector<int32_t> ReadEdits(Napi::Value value) const {
    std::vector<int32_t> edits = ReadVector<int32_t>(value, "memoryEdits");
    CheckEdits(edits);
    return edits;
  }

  // saveCheckpoint(sequence, number) -> Promise<number>: the bytes of the checkpoint, or 0 if the engine cannot make one.
  Napi::Value SaveCheckpoint(const Napi::CallbackInfo& info) {
    return Thread().Push(
        env_, [sequence = ReadSequence(info[0]), number = ReadInteger(info[1], "number")](Context& context) {
          return context.SaveCheckpoint(sequence, number);
        }, ToValue<size_t>);
  }

  // saveSequence(memoryEdits, sequence) -> Promise<Uint8Array>: its whole cache.
  Napi::Value SaveSequence(const Napi::CallbackInfo& info) {
    return Thread().Push(
        env_, [edits = ReadEdits(info[0]), sequence = ReadSequence(info[1])](Context& context) {
          return context.SaveSequence(edits, sequence);
        }, ToArray<uint8_t>);
  }

  // loadSequence(memoryEdits, sequence, state: Uint8Array) -> Promise<void>
  Napi::Value LoadSequence(const Napi::CallbackInfo& info) {
    return Thread().Push(env_, [edits = ReadEdits(info[0]), sequence = ReadSequence(info[1]),
                                state = ReadVector<uint8_t>(info[2], "state")](Context& context) {
      context.LoadSequence(edits, sequence, state);
    });
  }

  // loadAdapter(path) -> Promise<number>: the number by which steps name the adapter.
  Napi::Value LoadAdapter(const Napi::CallbackInfo& info) {
    return Thread().Push(
        env_, [path = ReadText(info[0], "path")](Context& context) { return context.EditAdapters().Load(path); }, ToValue<uint32_t>);
  }

  // mixAdapters(adapters: Uint32Array, scales: Float32Array) -> Promise<number>
  Napi::Value MixAdapters(const Napi::CallbackInfo& info) {
    auto adapters = ReadVector<uint32_t>(info[0], "adapters");
    auto scales = ReadVector<float>(info[1], "scales");
    Check(env_, adapters.size() == scales.size(), "scales: expected one per adapter");
    return Thread().Push(
        env_, [adapters = std::move(adapters), scales = std::move(scales)](Context& context) {
          return context.EditAdapters().Mix(adapters, scales);
        }, ToValue<uint32_t>);
  }

  // freeAdapter(number) -> Promise<void>
  Napi::Value FreeAdapter(const Napi::CallbackInfo& info) {
    return Thread().Push(env_, [adapter = ReadInteger<uint32_t>(info[0], "adapter", 1)](Context& context) { context.EditAdapters().Free(adapter); });
  }

  // attachHead(model, layers: Uint32Array) -> Promise<void>: attaches a model that drafts from the inputs of these layers, or, without any,
  // from the context's last states and its cache.
  Napi::Value AttachHead(const Napi::CallbackInfo& info) {
    return Thread().Push(env_, [model = RequireModel(info[0].As<Napi::Object>()),
                                layers = ReadVector<uint32_t>(info[1], "layers")](Context& context) { context.AttachHead(model, layers); });
  }

  // detachHead() -> Promise<void>
  Napi::Value DetachHead(const Napi::CallbackInfo&) {
    return Thread().Push(env_, [](Context& context) { context.DetachHead(); });
  }

  void CheckEdits(const std::vector<int32_t>& edits) const {
    const auto sequences = static_cast<int32_t>(options_.max_sequences);
    Check(env_, edits.size() % 5 == 0, "memoryEdits: expected five numbers per edit");
    for (size_t i = 0; i < edits.size(); i += 5) {
      const int32_t* edit = &edits[i];
      Check(env_, edit[0] >= kMemoryRemove && edit[0] <= kMemoryForget, "memoryEdits: unknown kind");
      const int32_t target = edit[0] == kMemoryCopy ? edit[2] : 0;  // other edits have no target sequence
      Check(env_, edit[1] >= 0 && edit[1] < sequences && target >= 0 && target < sequences,
            "memoryEdits: sequence out of range");
    }
  }

  void CheckStep(const StepInput& input) const {
    const auto count = static_cast<int32_t>(input.tokens.size());
    const auto sequences = static_cast<int32_t>(options_.max_sequences);
    Check(env_, input.positions.size() == input.tokens.size(), "positions: expected one per token");
    Check(env_, input.sequences.size() == input.tokens.size(), "sequences: expected one per token");
    Check(env_, input.samplers.size() == input.sample_rows.size(), "samplers: expected one per sampled row");
    CheckMedia(input);
    for (int32_t position : input.positions) Check(env_, position >= 0, "positions: expected a number >= 0");
    for (int32_t id : input.sequences) Check(env_, id >= 0 && id < sequences, "sequences: id out of range");
    for (int32_t row : input.sample_rows) Check(env_, row >= 0 && row < count, "sampleRows: index out of range");
    for (size_t i = 0; i < input.score_rows.size(); i += 3)
      Check(env_, input.score_rows[i] >= 0 && input.score_rows[i] < count, "scoreRows: index out of range");
    CheckOutputs(input);
    CheckNextDrafts(input);
    CheckEdits(input.memory_edits);
  }

  // A batch has at most as many rows as the context was made for. Each media of a step forms a separate batch, then the tokens follow.
  void CheckMedia(const StepInput& input) const {
    size_t at = 0;
    size_t text = 0;
    const auto check_tokens = [&](size_t end) {
      Check(env_, at <= end && end <= input.tokens.size(), "media: expected ascending runs of tokens");
      for (text += end - at; at < end; ++at)
        Check(env_, input.tokens[at] >= 0 && input.tokens[at] < vocab_size_, "tokens: id outside the vocabulary");
    };
    for (const MediaRows& media : input.media) {
      const auto count = static_cast<size_t>(media.count);
      check_tokens(static_cast<size_t>(media.at));
      at += count;
      Check(env_, count <= std::max(options_.batch_tokens, options_.whole_rows), "media: more rows than the batch size");
      Check(env_, (static_cast<size_t>(media.first) + count) * static_cast<size_t>(row_size_) <= media.rows->size(),
            "media: more rows than the chunk has");
      Check(env_, media.positions.empty() || media.positions.size() == 4 * count, "media: expected four planes of positions");
    }
    check_tokens(input.tokens.size());
    Check(env_, text <= options_.batch_tokens, "tokens: more than the context's batch size");
  }

  // The engine aborts the process when more rows need logits than its context was made for.
  void CheckOutputs(const StepInput& input) const {
    std::vector<int32_t> rows = input.sample_rows;
    for (size_t i = 0; i < input.score_rows.size(); i += 3) rows.push_back(input.score_rows[i]);
    std::sort(rows.begin(), rows.end());
    const auto outputs = std::unique(rows.begin(), rows.end()) - rows.begin();
    Check(env_, outputs <= static_cast<std::ptrdiff_t>(std::max(options_.max_outputs, options_.max_sequences)),
          "sampleRows: more rows of logits than the context's maxOutputs");
  }

  // The step after this one must fit as well, because it may run ahead.
  void CheckNextDrafts(const StepInput& input) const {
    size_t tokens = 0;
    for (size_t i = 0; i < input.draft_limits.size() / kLastDrafts; ++i) {
      if (input.IsDraft(i)) continue;
      const int32_t* limits = &input.draft_limits[kLastDrafts * i];
      tokens += 1 + static_cast<size_t>(*std::max_element(limits, limits + kLastDrafts));
    }
    const auto rows = std::min(options_.batch_tokens, std::max(options_.max_outputs, options_.max_sequences));
    Check(env_, tokens <= rows, "drafts.limits: more than a step holds");
  }

  // threads -> number: the threads of the last pass, or 0 if the context is closed.
  Napi::Value Threads(const Napi::CallbackInfo& info) { return Napi::Number::New(info.Env(), thread_ ? thread_->threads() : 0); }

  void Abort(const Napi::CallbackInfo&) {
    if (thread_) thread_->Abort();
  }

  // Stops the thread and frees the context off the JavaScript thread.
  Napi::Value Close(const Napi::CallbackInfo& info) {
    return AsyncTask::Run(info.Env(), info.This().As<Napi::Object>(), [thread = TakeThread()] {
      if (thread) thread->Stop();
    });
  }

  Napi::Env env_;
  std::shared_ptr<StepThread> thread_;
  ContextOptions options_;
  int32_t vocab_size_ = 0;
  int32_t row_size_ = 0;
};

}  // namespace

// createContext(model, options) -> Promise<Context>
static Napi::Value CreateContext(const Napi::CallbackInfo& info) {
  const auto owner = info[0].As<Napi::Object>();
  std::shared_ptr<Model> model = RequireModel(owner);
  const ContextOptions options = ReadContextOptions(Fields(info[1]));
  return AsyncTask::Run(
      info.Env(), owner, [model, options] { return Context::Create(model, options); },
      [options, model](Napi::Env env, const std::shared_ptr<Context>& context) {
        Napi::Object object = Environment::Of(env).Construct("Context");
        const DraftHead* head = context->head();
        SetFields(object, "hasDraftHead", head != nullptr, "mostDrafts", head ? head->most_drafts() : 0, "rollbackTokens",
                  context->rollback_tokens(), "windowTokens", context->window_tokens());
        JsContext::Unwrap(object)->Start(context, options, model->vocab_size(), model->input_size());
        return object;
      });
}

void RegisterContext(Napi::Env env, Napi::Object exports) {
  Environment::Of(env).AddClass("Context", JsContext::Define(env));
  exports.Set("createContext", Napi::Function::New<CreateContext>(env, "createContext"));
}

}  // namespace onpolicy
