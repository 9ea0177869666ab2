// A GGUF file -> weights, vocabulary and metadata in memory. Text <-> token ids.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "llama/library.h"

namespace onpolicy {

struct ModelOptions {
  std::string path;
  bool use_gpu = true;
  int32_t gpu_layers = -1;                    // layers on the GPU; negative: all
  std::vector<std::string> devices;           // names of the GPUs that share the layers; empty: as the engine chooses
  std::vector<float> tensor_split;            // their shares, in the same order; empty: by free memory
  bool packs = false;             // weights for matmuls of our own, on the CPU
  std::optional<bool> mmap;                   // map the file; absent: where the engine can
  bool load_heads = false;                    // its layers for multi-token prediction, too
  bool mlock = false;                         // keep the weights from being swapped out
  std::function<bool(float)> on_progress;     // fraction done, on the loading thread; false stops the load
};

// The bytes of all tokens, concatenated, and the kind of each token.
struct VocabularyTable {
  std::vector<uint8_t> bytes;
  std::vector<int32_t> offsets;    // (vocab + 1)
  std::vector<uint8_t> is_special; // (vocab) control or unknown token: produces no text when specials are skipped
  std::vector<uint8_t> is_end;     // (vocab) ends a generation: end of sequence, of turn, of message
};

// The tokens of a loaded model as a constraint has them, as `ReadGgufVocabulary` finds them in its file. Unused ones have no
// text to sample, only one that a structural tag may name.
struct ConstraintTokens {
  std::vector<uint8_t> bytes;
  std::vector<uint32_t> offsets;  // (vocab + 1)
  std::vector<int32_t> ends;
  std::vector<int32_t> specials;
  bool merges_by_id = false;
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
  // The model's memory is leaked: see Context::Abandon.
  void Abandon() { is_abandoned_ = true; }
  // Floats of one row of embeddings.
  int32_t input_size() const { return Api().llama_model_n_embd_inp(model_); }
  // The kernels that compute matmuls of packed weights; "plain": there are none.
  const std::string& kernels() const { return kernels_; }
  // Whether what can be computed by kernels of our own is.
  bool has_own_kernels() const { return has_own_kernels_; }
  // Whether all weights are float32. Then the cache is too: 16 bits would be the coarsest part of the computation.
  bool is_f32() const;
  // Whether tokens choose among matrices of some layers.
  bool has_experts() const;
  // Whether some layers keep a state of what they have read.
  bool is_recurrent() const { return Api().llama_model_is_recurrent(model_) || Api().llama_model_is_hybrid(model_); }

  std::vector<int32_t> Tokenize(const std::string& text, bool add_special, bool parse_special) const;
  VocabularyTable Table() const;
  ConstraintTokens TokensForConstraints() const;
  // All scalar metadata of the file, keys as the GGUF names them.
  std::vector<std::pair<std::string, std::string>> Metadata() const;
  // The value of one key as text; empty when there is none.
  std::string MetadataValue(const char* key) const;
  std::string ChatTemplate(const char* name) const;  // empty when there is none

 private:
  Model(llama_model* model, bool use_gpu);
  // The first character that has no tokens, in words.
  std::string Unspelled(const std::string& text) const;
  std::vector<int32_t> TokenizeChecked(const std::string& text, bool add_special, bool parse_special) const;
  static std::shared_ptr<Model> LoadAlone(const ModelOptions& options);
  llama_model* model_;
  const llama_vocab* vocab_;
  int32_t vocab_size_;
  bool use_gpu_;
  std::atomic<bool> is_abandoned_{false};
  std::string kernels_ = "plain";
  bool has_own_kernels_ = false;
};

}  // namespace onpolicy
