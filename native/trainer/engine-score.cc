#include "trainer/engine-score.h"

#include <memory>

#include "llama/library.h"
#include "llama/thread-pool.h"
#include "products/install.h"
#include "products/packing.h"
#include "trainer/head.h"

namespace onpolicy::training {
namespace {

template <typename T, typename Free>
std::unique_ptr<T, Free> Own(T* pointer, Free free) {
  return {pointer, free};
}

}  // namespace

Status ScoreWithEngine(const std::string& model_path, const std::string& adapter_path, int threads,
                       std::vector<int32_t> tokens, std::vector<float>* logprobs) {
  const Library& api = Api();
  auto model_params = api.llama_model_default_params();
  model_params.n_gpu_layers = 0;
  const products::Packing packing(products::Installed().kernels ? products::Packs::kQuantized : products::Packs::kNone);  // as models are served
  auto model = Own(api.llama_model_load_from_file(model_path.c_str(), model_params), api.llama_model_free);
  if (!model) return Status::Fail("MODEL_INVALID", "the engine cannot load " + model_path);
  const auto count = static_cast<uint32_t>(tokens.size());
  auto params = api.llama_context_default_params();
  params.n_ctx = params.n_batch = params.n_ubatch = count;
  params.n_outputs_max = count;
  params.n_threads = params.n_threads_batch = threads;
  params.no_perf = true;
  params.type_k = params.type_v = GGML_TYPE_F32;  // a rounded cache would blur the comparison
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  const ThreadPool pool(threads);  // the context computes with it to its end
  auto context = Own(api.llama_init_from_model(model.get(), params), api.llama_free);
  if (!context) return Status::Fail("OUT_OF_MEMORY", "the engine cannot make a context");
  if (!adapter_path.empty()) {
    llama_adapter_lora* adapter = api.llama_adapter_lora_init(model.get(), adapter_path.c_str());  // the model frees it
    if (!adapter) return Status::Fail("MODEL_INVALID", "the engine cannot load the adapter " + adapter_path);
    float scale = 1.0f;
    if (api.llama_set_adapters_lora(context.get(), &adapter, 1, &scale) != 0)
      return Status::Fail("BACKEND_FAILED", "the engine does not take the adapter");
  }
  std::vector<llama_pos> positions(count);
  std::vector<int32_t> sequence_counts(count, 1);
  std::vector<llama_seq_id> sequence(1, 0);
  std::vector<llama_seq_id*> sequences(count, sequence.data());
  std::vector<int8_t> has_logits(count, 1);
  for (uint32_t i = 0; i < count; ++i) positions[i] = static_cast<llama_pos>(i);
  llama_batch batch{.n_tokens = static_cast<int32_t>(count),
                    .token = tokens.data(),
                    .embd = nullptr,
                    .pos = positions.data(),
                    .n_seq_id = sequence_counts.data(),
                    .seq_id = sequences.data(),
                    .logits = has_logits.data()};
  api.llama_attach_threadpool(context.get(), pool.get(), pool.get());
  if (api.llama_decode(context.get(), batch) != 0) return Status::Fail("BACKEND_FAILED", "the engine cannot decode");
  const int32_t vocabulary = api.llama_vocab_n_tokens(api.llama_model_get_vocab(model.get()));
  logprobs->clear();
  for (uint32_t i = 0; i + 1 < count; ++i) {
    const float* logits = api.llama_get_logits_ith(context.get(), static_cast<int32_t>(i));
    logprobs->push_back(ScanLogits(logits, vocabulary).Logprob(logits[tokens[i + 1]]));
  }
  return Status::Ok();
}

}  // namespace onpolicy::training
