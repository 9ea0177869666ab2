// Token sequences -> one vector each, as the model pools them, or the numbers of its head. Owns a context.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/scoped-value.h"
#include "base/thread-budget.h"
#include "engine-assumptions/attention/hook.h"
#include "engine-assumptions/error-log.h"
#include "engine-assumptions/pool/computation.h"
#include "engine-assumptions/table/assumptions.h"
#include "engine-assumptions/table/names.h"
#include "engine/context-options.h"
#include "engine/model.h"
#include "engine/thread-pool.h"

namespace onpolicy {

struct EmbedderOptions {
  uint32_t batch_tokens = 512;  // maximum tokens of one call
  uint32_t max_sequences = 64;  // maximum sequences of one call
  int32_t threads = 1;
  bool fused_attention = true;
  bool has_head = false;        // the model's head converts a sequence's vector to one number, or one per label
  bool is_last = false;         // the vector is that of the last token; a causal model then computes only that one to the end
};

class Embedder {
 public:
  // Throws OUT_OF_MEMORY.
  static std::shared_ptr<Embedder> Create(std::shared_ptr<Model> model, const EmbedderOptions& options) {
    std::shared_ptr<Embedder> created(new Embedder(std::move(model), options));
    created->Open(options.is_last);
    if (!created->reads_states_) return created;
    created->Decode({0}, {1});
    const bool is_named = !created->states_.empty();
    Check(Assumed::kPooledState, is_named ? "" : "no node of a graph is named " + std::string(kPooledState));
    if (!is_named) created->Open(false);
    return created;
  }

  ~Embedder() { Close(); }
  Embedder(const Embedder&) = delete;
  Embedder& operator=(const Embedder&) = delete;

  // Returns the vectors (sequences, size). `lengths`: token count of each sequence; the sequences lie end to end in `tokens`. Calls from
  // several threads run one after the other. A call ends early with ABORTED once `is_ending` returns true.
  std::vector<float> Embed(const std::vector<int32_t>& tokens, const std::vector<int32_t>& lengths,
                           const std::function<bool()>& is_ending) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const grammar::ScopedValue asked(is_ending_, &is_ending);
    Decode(tokens, lengths);
    const auto size = static_cast<size_t>(size_);
    std::vector<float> rows;
    if (reads_states_) rows = std::move(states_);
    for (size_t i = 0; !reads_states_ && i < lengths.size(); ++i) {
      const float* row = Api().llama_get_embeddings_seq(context_, static_cast<int32_t>(i));
      if (!row) throw Failure("BACKEND_FAILED", "the engine returned no embedding for a sequence");
      rows.insert(rows.end(), row, row + size);
    }
    if (rows.size() != lengths.size() * size) throw Failure("BACKEND_FAILED", "the engine returned another number of embeddings");
    return rows;
  }

  // Number of floats in a vector.
  int32_t size() const { return size_; }

 private:
  Embedder(std::shared_ptr<Model> model, const EmbedderOptions& options)
      : model_(std::move(model)), options_(options),
        size_(options.has_head ? static_cast<int32_t>(Api().llama_model_n_cls_out(model_->get()))
                               : Api().llama_model_n_embd_out(model_->get())),
        pool_(std::make_unique<ThreadPool>(options.threads)), threads_(options.threads) {}

  // `reads_states`: takes the last tokens' states from the graph, instead of the engine's pooled vectors.
  void Open(bool reads_states) {
    Close();
    const Library& api = Api();
    reads_states_ = reads_states;
    llama_context_params params = api.llama_context_default_params();
    params.n_ctx = params.n_batch = options_.batch_tokens;
    // A sequence that the engine pools must lie in one pass. Non-causal attention needs that too.
    params.n_ubatch = reads_states ? std::min(options_.batch_tokens, kPassTokens) : options_.batch_tokens;
    params.n_seq_max = options_.max_sequences;
    params.n_outputs_max = reads_states ? options_.max_sequences : 0;
    params.n_threads = params.n_threads_batch = options_.threads;
    params.kv_unified = true;
    params.embeddings = !reads_states;
    if (!options_.fused_attention) params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    params.no_perf = true;
    params.swa_full = true;
    params.offload_kqv = params.op_offload = model_->use_gpu();
    params.abort_callback = [](void* data) {
      const auto* is_ending = static_cast<Embedder*>(data)->is_ending_;
      return is_ending && (*is_ending)();
    };
    params.abort_callback_data = this;
    if (reads_states) {
      params.cb_eval = [](ggml_tensor* node, bool is_question, void* data) {
        return InCallback([&] { return static_cast<Embedder*>(data)->OnNode(node, is_question); }, false);
      };
      params.cb_eval_user_data = this;
    }
    ErrorLog log;
    context_ = log.Run([&] { return api.llama_init_from_model(model_->get(), params); });
    if (!context_) throw Failure("OUT_OF_MEMORY", "a context for embeddings could not be made: " + log.Text());
    api.llama_attach_threadpool(context_, pool_->get(), pool_->get());
  }

  void Close() {
    if (context_) Api().llama_free(context_);
    context_ = nullptr;
  }

  void Decode(const std::vector<int32_t>& tokens, const std::vector<int32_t>& lengths) {
    const Library& api = Api();
    if (IsLost(pool_->get())) {  // an assert has ended an earlier computation
      pool_ = std::make_unique<ThreadPool>(options_.threads);
      Open(reads_states_);
    }
    if (llama_memory_t memory = api.llama_get_memory(context_)) api.llama_memory_clear(memory, false);
    states_.clear();
    std::vector<int32_t> positions, sequences;
    std::vector<int8_t> outputs;
    for (size_t i = 0; i < lengths.size(); ++i)
      for (int32_t position = 0; position < lengths[i]; ++position) {
        positions.push_back(position);
        sequences.push_back(static_cast<int32_t>(i));
        outputs.push_back(!reads_states_ || position + 1 == lengths[i]);
      }
    std::vector<int32_t> counts(tokens.size(), 1);
    std::vector<int32_t*> ids;
    for (int32_t& sequence : sequences) ids.push_back(&sequence);
    llama_batch batch{};
    batch.n_tokens = static_cast<int32_t>(tokens.size());
    batch.token = const_cast<int32_t*>(tokens.data());
    batch.pos = positions.data();
    batch.n_seq_id = counts.data();
    batch.seq_id = ids.data();
    batch.logits = outputs.data();
    const ThreadBudget::Share share(threads_);
    api.llama_set_n_threads(context_, share.threads(), share.threads());
    const attention::Scope scope(model_->has_own_kernels());
    const int32_t result = api.llama_decode(context_, batch);
    if (result == 2) throw Failure("ABORTED", "the embeddings were aborted");
    if (result != 0) throw Failure("BACKEND_FAILED", "the engine failed to compute embeddings (code " + std::to_string(result) + ")");
  }

  // Copies the states, and ends the pass before the output layer computes logits, which are not needed.
  bool OnNode(ggml_tensor* node, bool is_question) {
    const bool is_states = std::strcmp(node->name, kPooledState) == 0;
    if (is_question || !is_states) return is_states;
    const size_t before = states_.size();
    states_.resize(before + static_cast<size_t>(Api().ggml_nelements(node)));
    Api().ggml_backend_tensor_get(node, states_.data() + before, 0, Api().ggml_nbytes(node));
    return false;
  }

  const std::shared_ptr<Model> model_;
  const EmbedderOptions options_;
  const int32_t size_;
  std::unique_ptr<ThreadPool> pool_;
  ThreadBudget::User threads_;
  std::mutex mutex_;
  llama_context* context_ = nullptr;
  bool reads_states_ = false;
  std::vector<float> states_;  // (outputs so far, size)
  const std::function<bool()>* is_ending_ = nullptr;
};

}  // namespace onpolicy
