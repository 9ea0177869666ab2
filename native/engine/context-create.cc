// Options of a context -> the context, with the attention and the cache that its model needs.
#include <string>

#include "engine-assumptions/attention/hook.h"
#include "engine-assumptions/cache-log.h"
#include "engine-assumptions/error-log.h"
#include "engine/context.h"
#include "engine/planned-graph.h"

namespace onpolicy {

Context::Context(std::shared_ptr<Model> model, const ContextOptions& options)
    : model_(std::move(model)),
      threads_(options.threads),
      pool_(std::make_unique<ThreadPool>(options.threads)),
      share_(options.threads),
      adapters_(*model_),
      is_kv_unified_(options.is_kv_unified),
      is_recurrent_(model_->is_recurrent()),
      rows_(options.sampled_vocab > 0 ? options.sampled_vocab : model_->vocab_size(), options.threads) {}

std::shared_ptr<Context> Context::Create(std::shared_ptr<Model> model, const ContextOptions& options) {
  const Library& api = Api();
  std::shared_ptr<Context> created(new Context(model, options));
  llama_context_params params = ParamsOf(options, *model);
  params.abort_callback = [](void* data) {
    return static_cast<const Context*>(data)->is_aborted_();
  };
  params.abort_callback_data = created.get();
  bool has_own_attention = false;
  const bool is_wide = HasWideCells(options, *model);
  const bool may_be_own = is_wide && options.fused_attention && model->has_own_kernels();
  if (may_be_own || options.is_deterministic) {
    const PlannedGraph graph(*model, params, *created->pool_);
    if (options.is_deterministic) graph.RequireInvariance("this model");
    if (options.is_deterministic && options.is_kv_unified && options.max_sequences > 1) graph.RequirePositions();
    has_own_attention = graph.has_own_attention();
  }
  // On CPUs the engine's own fused attention rounds to 16 bits: log-probabilities of F32 models would change by 1e-3 with the step's company.
  if (is_wide && !has_own_attention && !options.keeps_fusion) params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  llama_context_params seen = params;
  if (model->has_experts()) created->record_.Attach(&seen, created->is_recurrent_);
  ErrorLog log;
  const CacheLog cache_log;
  created->context_ = log.Run([&] { return api.llama_init_from_model(model->get(), seen); });
  if (!created->context_)
    throw Failure("OUT_OF_MEMORY",
                  "a context of " + std::to_string(options.kv_tokens) + " tokens could not be made: " + log.Text());
  // The bytes are those of attention as it was asked for: without fusion, rows of all layers are as long as the longest.
  const bool is_as_asked = (params.flash_attn_type != LLAMA_FLASH_ATTN_TYPE_DISABLED) == options.fused_attention;
  if (options.cache_bytes > 0 && is_as_asked) cache_log.Compare(options.cache_bytes);
  created->adapters_.Attach(created->context_, params, created->pool_.get(), options.is_deterministic);
  created->params_ = params;
  if (options.has_draft_head) created->SetHead(DraftHead::CreateOwn(created->AsTarget()));
  created->cache_.Begin(created->context_, options, *model);
  api.llama_attach_threadpool(created->context_, created->pool_->get(), created->pool_->get());
  return created;
}

}  // namespace onpolicy
