// The engine's graphs of a batch -> the experts that each token took in each layer, recorded on request.
#pragma once
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "engine-assumptions/library.h"

namespace onpolicy {

// Stands for the experts of a token that the engine did not compute. In the last layer it computes only tokens whose logits are wanted.
constexpr uint16_t kNoExpert = 0xFFFF;

// Experts that tokens took, in the layers that have experts.
struct RoutedExperts {
  int32_t layers = 0, used = 0;
  std::vector<uint16_t> ids;  // (tokens, layers, used)

  size_t width() const { return static_cast<size_t>(layers) * static_cast<size_t>(used); }
  const uint16_t* of(size_t token) const { return &ids[token * width()]; }
};

class ExpertRecord {
 public:
  // Observes the graphs of the context made with `params`. `is_recurrent`: its model is recurrent.
  void Attach(llama_context_params* params, bool is_recurrent);

  // Records graphs from here until Stop.
  void Begin();
  void Stop() { is_on_ = false; }
  // Returns the experts of a batch that was computed between Begin and Stop, or nothing if they are unknown. `sequences` (tokens).
  RoutedExperts Take(llama_context* context, const llama_batch& batch, const int32_t* sequences) const;

 private:
  struct OfLayer {
    int32_t layer;
    int64_t used;
    std::vector<int32_t> ids;  // (tokens in the engine's order, used)
  };

  static bool See(ggml_tensor* node, bool is_asked, void* record);
  bool OnNode(ggml_tensor* node, bool is_asked);
  void Read(const ggml_tensor* node);
  // Returns each token's index in the batch (tokens), in the order in which they were computed. Empty if the order is unknown.
  std::vector<int32_t> OrderOf(llama_context* context, const llama_batch& batch, const int32_t* sequences) const;

  bool is_on_ = false;
  bool is_unified_ = false, is_recurrent_ = false;
  int32_t pass_tokens_ = 0;      // maximum of one graph
  std::vector<int32_t> tokens_;  // as the graphs read them
  std::vector<OfLayer> layers_;  // ascending
};

}  // namespace onpolicy
