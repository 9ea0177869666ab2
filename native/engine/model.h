// A GGUF file -> weights, vocabulary and metadata in memory. Converts between text and token ids.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine-assumptions/library.h"

namespace onpolicy {

struct ModelOptions {
  std::string path;
  bool use_gpu = true;
  int32_t gpu_layers = -1;                    // layers on the GPU; negative: all
  std::string cpu_tensors;                    // regular expression: weights with such names stay in main memory; empty: none
  std::vector<std::string> devices;           // names of the GPUs that share the layers; empty: as the engine chooses
  std::vector<float> tensor_split;            // their shares, in the same order; empty: by free memory
  bool is_unfused = false;                    // the engine cannot fuse attention of this architecture
  bool packs = false;             // pack weights for this addon's matmuls, on the CPU
  std::optional<bool> mmap;                   // map the file; absent: if the engine can
  bool load_heads = false;                    // also load layers for multi-token prediction
  bool mlock = false;                         // keep the weights from being swapped out
  bool vocab_only = false;                    // load only the tokenizer, without weights
  std::function<bool(float)> on_progress;     // fraction done, on the loading thread; false stops the load
};

// The bytes of all tokens, concatenated, and the kind of each token.
struct VocabularyTable {
  std::vector<uint8_t> bytes;
  std::vector<int32_t> offsets;    // (vocab + 1)
  std::vector<uint8_t> is_special; // (vocab) control or unknown token: produces no text when specials are skipped
  std::vector<uint8_t> is_end;     // (vocab) ends a generation: end of sequence, of turn, of message
};

// The tokens of a loaded model in the form of a constraint, as `ReadGgufVocabulary` reads them from its file. Unused tokens have no text to
// sample, only a text that a structural tag may name.
struct ConstraintTokens {
  std::vector<uint8_t> bytes;
  std::vector<uint32_t> offsets;  // (vocab + 1)
  std::vector<int32_t> ends;
  std::vector<int32_t> specials;
};

class Model {
 public:
  static std::shared_ptr<Model> Load(const ModelOptions& options);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  llama_model* get() const { return model_; }
  const llama_vocab* vocab() const { return vocab_; }
  int32_t vocab_size() const { return vocab_size_; }
  bool use_gpu() const { return use_gpu_; }
  // Leaks the model's memory: see Context::Abandon.
  void Abandon() { is_abandoned_ = true; }
  // Number of floats in one row of embeddings.
  int32_t input_size() const { return Api().llama_model_n_embd_inp(model_); }
  // Name of the kernels that compute matmuls of packed weights; "plain" if there are none.
  const std::string& kernels() const { return kernels_; }
  // Name of the kernels that compute attention, "plain", or null before the first pass.
  const char* attention() const { return attention_; }
  void SetAttention(const char* kernels) { attention_ = kernels; }
  // True if this addon's kernels compute all nodes that they can.
  bool has_own_kernels() const { return has_own_kernels_; }
  // True if all weights are float32. The cache is then float32 too, because 16 bits would be the least precise part of the computation.
  bool is_f32() const;
  // True if some layers have experts.
  bool has_experts() const;
  // True if some layers are recurrent.
  bool is_recurrent() const { return Api().llama_model_is_recurrent(model_) || Api().llama_model_is_hybrid(model_); }

  std::vector<int32_t> Tokenize(const std::string& text, bool add_special, bool parse_special) const;
  VocabularyTable Table() const;
  ConstraintTokens TokensForConstraints() const;
  // Returns all scalar metadata of the file, with the keys of the GGUF.
  std::vector<std::pair<std::string, std::string>> Metadata() const;
  // Returns the value of one key as text, or an empty string if the file does not have it.
  std::string MetadataValue(const char* key) const;
  std::string ChatTemplate(const char* name) const;  // empty if there is none

 private:
  Model(llama_model* model, bool use_gpu);
  // Returns a description of the first character that has no tokens.
  std::string Unspelled(const std::string& text) const;
  static std::shared_ptr<Model> LoadAlone(const ModelOptions& options);
  llama_model* model_;
  const llama_vocab* vocab_;
  int32_t vocab_size_;
  bool use_gpu_;
  std::atomic<bool> is_abandoned_{false};
  std::string kernels_ = "plain";
  std::atomic<const char*> attention_{nullptr};
  bool has_own_kernels_ = false;
};

}  // namespace onpolicy
