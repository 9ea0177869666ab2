// Token sequences -> one vector each, as the model pools them, or the numbers of its head, in a context of its own.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "llama/model.h"
#include "llama/thread-pool.h"
#include "threads/thread-budget.h"

namespace onpolicy {

struct EmbedderOptions {
  uint32_t batch_tokens = 512;  // tokens of one call at most
  uint32_t max_sequences = 64;  // sequences of one call at most
  int32_t threads = 1;
  bool fused_attention = true;
  bool has_head = false;        // a head turns a sequence's vector into a number for each label, or into one
  bool is_last = false;         // a sequence's vector is that of its last token: with a causal model, only that one is computed to the end
};

class Embedder {
 public:
  // Throws OUT_OF_MEMORY.
  static std::shared_ptr<Embedder> Create(std::shared_ptr<Model> model, const EmbedderOptions& options);
  ~Embedder();
  Embedder(const Embedder&) = delete;
  Embedder& operator=(const Embedder&) = delete;

  // `lengths`: tokens of each sequence, which lie end to end. -> (sequences, size). Calls from several threads wait for
  // each other. `is_ending` ends a call early.
  std::vector<float> Embed(const std::vector<int32_t>& tokens, const std::vector<int32_t>& lengths, const std::function<bool()>& is_ending);

  // Numbers of a vector.
  int32_t size() const { return size_; }

 private:
  Embedder(std::shared_ptr<Model> model, const EmbedderOptions& options);
  // `reads_states`: takes the last tokens' states out of the graph, instead of what the engine pools.
  void Open(bool reads_states);
  void Close();
  void Decode(const std::vector<int32_t>& tokens, const std::vector<int32_t>& lengths);
  bool OnNode(ggml_tensor* node, bool is_question);

  const std::shared_ptr<Model> model_;
  const EmbedderOptions options_;
  const int32_t size_;
  const ThreadPool pool_;
  ThreadBudget::User threads_;
  std::mutex mutex_;
  llama_context* context_ = nullptr;
  bool reads_states_ = false;
  std::vector<float> states_;  // (outputs so far, size)
  const std::function<bool()>* is_ending_ = nullptr;
};

}  // namespace onpolicy
