// Token sequences that JavaScript gives -> checked input for an embedder -> their vectors.
#include <atomic>

#include "addon/arguments.h"
#include "addon/async-task.h"
#include "addon/environment.h"
#include "addon/register.h"
#include "addon/unwrap.h"
#include "engine/embedder.h"

namespace onpolicy {
namespace {

class JsEmbedder : public Napi::ObjectWrap<JsEmbedder> {
 public:
  static Napi::Function Define(Napi::Env env) {
    return DefineClass(env, "Embedder",
                       {InstanceMethod<&JsEmbedder::Embed>("embed"), InstanceMethod<&JsEmbedder::Close>("close")});
  }

  explicit JsEmbedder(const Napi::CallbackInfo& info) : Napi::ObjectWrap<JsEmbedder>(info) {}

  void Start(std::shared_ptr<Embedder> embedder, const EmbedderOptions& options, int32_t vocab_size) {
    embedder_ = std::move(embedder);
    options_ = options;
    vocab_size_ = vocab_size;
  }

 private:
  // embed(tokens: Int32Array, lengths: Int32Array) -> Promise<Float32Array>
  Napi::Value Embed(const Napi::CallbackInfo& info) {
    Napi::Env env = info.Env();
    if (!embedder_) throw ToError(env, Status::Fail("CLOSED", "the model is closed"));
    std::vector<int32_t> tokens = ToVector(ReadTokenIds(info[0], "tokens", vocab_size_));
    std::vector<int32_t> lengths = ReadVector<int32_t>(info[1], "lengths");
    int64_t total = 0;
    for (int32_t length : lengths) {
      Check(env, length > 0, "lengths: expected numbers from 1 up");
      total += length;
    }
    Check(env, total == static_cast<int64_t>(tokens.size()), "lengths: expected as many tokens as they say");
    Check(env, tokens.size() <= options_.batch_tokens, "tokens: more than the batch size");
    Check(env, lengths.size() <= options_.max_sequences, "lengths: more than the number of sequences");
    auto work = [embedder = embedder_, tokens = std::move(tokens), lengths = std::move(lengths), closing = closing_,
                 ending = Environment::Of(env).ending()] {
      return embedder->Embed(tokens, lengths, [&] { return closing->load() || ending->load(); });
    };
    return AsyncTask::Run(env, info.This().As<Napi::Object>(), std::move(work), ToArray<float>);
  }

  // Ends the running computation, then frees the context off the JavaScript thread.
  Napi::Value Close(const Napi::CallbackInfo& info) {
    *closing_ = true;
    auto owned = std::make_shared<std::shared_ptr<Embedder>>(std::move(embedder_));
    return AsyncTask::Run(info.Env(), info.This().As<Napi::Object>(), [owned] { owned->reset(); });
  }

  std::shared_ptr<Embedder> embedder_;
  std::shared_ptr<std::atomic<bool>> closing_ = std::make_shared<std::atomic<bool>>(false);
  EmbedderOptions options_;
  int32_t vocab_size_ = 0;
};

// createEmbedder(model, { batchTokens, maxSequences, threads, fusedAttention, hasHead, isLast }) -> Promise<Embedder>
Napi::Value CreateEmbedder(const Napi::CallbackInfo& info) {
  const auto owner = info[0].As<Napi::Object>();
  std::shared_ptr<Model> model = RequireModel(owner);
  const Fields given(info[1]);
  EmbedderOptions options;
  options.batch_tokens = given.UnsignedOr("batchTokens", options.batch_tokens);
  options.max_sequences = given.UnsignedOr("maxSequences", options.max_sequences);
  options.threads = static_cast<int32_t>(given.UnsignedOr("threads", 1));
  options.fused_attention = given.Flag("fusedAttention");
  options.has_head = given.Flag("hasHead");
  options.is_last = given.Flag("isLast");
  return AsyncTask::Run(
      info.Env(), owner, [model, options] { return Embedder::Create(model, options); },
      [model, options](Napi::Env env, const std::shared_ptr<Embedder>& embedder) {
        Napi::Object object = Environment::Of(env).Construct("Embedder");
        object.Set("size", embedder->size());
        JsEmbedder::Unwrap(object)->Start(embedder, options, model->vocab_size());
        return object;
      });
}

}  // namespace

void RegisterEmbedder(Napi::Env env, Napi::Object exports) {
  Environment::Of(env).AddClass("Embedder", JsEmbedder::Define(env));
  exports.Set("createEmbedder", Napi::Function::New<CreateEmbedder>(env, "createEmbedder"));
}

}  // namespace onpolicy
