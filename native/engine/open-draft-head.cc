// A large model, and its own layers or a file that draft for it -> an open draft head.
#include "engine-assumptions/error-log.h"
#include "engine/draft-head.h"
#include "engine/planned-graph.h"

namespace onpolicy {
namespace {

void RequireTokens(const DraftTarget& target, const Model& model) {
  if (model.vocab_size() < target.sampled_vocab)
    throw Failure("INVALID_REQUEST", "expected a file with the " + std::to_string(target.sampled_vocab) +
                                         " tokens of the large model, got " + std::to_string(model.vocab_size()));
}

void RequireStates(bool are_offered) {
  if (!are_offered) throw Failure("UNSUPPORTED", "the engine's library does not offer the states that it reads");
}

}  // namespace

DraftHead::DraftHead(const DraftTarget& target, std::shared_ptr<Model> model, HeadKind kind, std::vector<uint32_t> layers)
    : target_(target.context),
      cache_(target.cache),
      model_(std::move(model)),
      kind_(kind),
      layers_(std::move(layers)),
      target_width_(static_cast<size_t>(Api().llama_model_n_embd(target.model.get()))),
      width_(static_cast<size_t>(Api().llama_model_n_embd_out(model_ ? model_->get() : target.model.get()))),
      state_width_(layers_.empty() ? width_ : layers_.size() * target_width_),
      layers_in_chain_(kind == HeadKind::kOwn ? static_cast<int32_t>(Api().llama_model_n_layer_nextn(target.model.get())) : 1),
      rows_(target.sampled_vocab, target.threads),
      sequences_(target.params.n_seq_max) {}

void DraftHead::Open(llama_model* model, llama_context_params params, ThreadPool& pool) {
  const Library& api = Api();
  params.ctx_other = target_;
  params.n_rs_seq = 0;
  params.abort_callback = nullptr;
  ErrorLog log;
  context_ = log.Run([&] { return api.llama_init_from_model(model, params); });
  if (!context_) throw Failure("OUT_OF_MEMORY", "its context could not be made: " + log.Text());
  api.set_embeddings_nextn(context_, true, true);
  api.llama_attach_threadpool(context_, pool.get(), pool.get());
  batch_tokens_ = params.n_batch;
}

std::unique_ptr<DraftHead> DraftHead::CreateOwn(const DraftTarget& target) {
  const Library& api = Api();
  const bool is_offered = api.set_embeddings_nextn && api.get_embeddings_nextn_ith && api.set_nextn_layer_offset;
  if (!is_offered || api.llama_model_n_layer_nextn(target.model.get()) == 0) return nullptr;
  std::unique_ptr<DraftHead> head(new DraftHead(target, nullptr, HeadKind::kOwn, {}));
  llama_context_params params = target.params;
  params.ctx_type = LLAMA_CONTEXT_TYPE_MTP;
  try {
    head->Open(target.model.get(), params, target.pool);
  } catch (const Failure& failure) {
    LogLine(GGML_LOG_LEVEL_WARN, ("drafts: none by the model's own head, as " + failure.status().message + "\n").c_str());
    return nullptr;
  }
  return head;
}

std::unique_ptr<DraftHead> DraftHead::CreateEagle(const DraftTarget& target, std::shared_ptr<Model> model, std::vector<uint32_t> layers) {
  const Library& api = Api();
  RequireStates(api.set_embeddings_layer_inp && api.get_embeddings_layer_inp && api.set_embeddings_nextn && api.get_embeddings_nextn_ith);
  RequireTokens(target, *model);
  if (!KeepsLayers(target.model, target.params, target.pool, layers))
    throw Failure("UNSUPPORTED", "the engine does not keep the states of layers that it reads, for the large model's architecture");
  llama_model* const file = model->get();
  std::unique_ptr<DraftHead> created(new DraftHead(target, std::move(model), HeadKind::kEagle, std::move(layers)));
  created->Open(file, target.params, target.pool);
  for (uint32_t layer : created->layers_) api.set_embeddings_layer_inp(target.context, layer, true);
  return created;
}

std::unique_ptr<DraftHead> DraftHead::CreateSharing(const DraftTarget& target, std::shared_ptr<Model> model) {
  RequireStates(Api().set_embeddings_nextn && Api().get_embeddings_nextn_ith);
  RequireTokens(target, *model);
  llama_model* const file = model->get();
  std::unique_ptr<DraftHead> created(new DraftHead(target, std::move(model), HeadKind::kSharing, {}));
  llama_context_params params = target.params;
  params.ctx_type = LLAMA_CONTEXT_TYPE_MTP;
  // A new context that shares a cache empties it.
  target.cache.Keep([&] { created->Open(file, params, target.pool); });
  return created;
}

DraftHead::~DraftHead() {
  try {
    Release();
  } catch (const Failure&) {  // the target keeps writing states that are not read
  }
}

void DraftHead::Release() {
  if (!context_) return;
  Api().llama_free(context_);
  context_ = nullptr;
  if (layers_.empty()) Api().set_embeddings_nextn(target_, false, false);
  for (uint32_t layer : layers_) Api().set_embeddings_layer_inp(target_, layer, false);
}

}  // namespace onpolicy
