// The engine's graphs of a batch -> which experts each token took in each layer, where somebody wants to know.
#pragma once
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "llama/library.h"

namespace onpolicy {

// In place of the experts of a token that the engine did not compute. Of the last layer it computes only tokens whose logits are wanted.
constexpr uint16_t kNoExpert = 0xFFFF;

// What tokens took, in the layers that have experts.
struct RoutedExperts {
  int32_t layers = 0, used = 0;
  std::vector<uint16_t> ids;  // (tokens, layers, used)

  size_t width() const { return static_cast<size_t>(layers) * static_cast<size_t>(used); }
  const uint16_t* of(size_t token) const { return &ids[token * width()]; }
};

class ExpertRecord {
 public:
  // `params`: of the context whose graphs are seen. `is_recurrent`: of its model.
  void Attach(llama_context_params* params, bool is_recurrent);

  // From here on until Stop, graphs are seen.
  void Begin();
  void Stop() { is_on_ = false; }
  // Of the tokens of a batch that was computed in between. `sequences` and `wants_logits` (tokens).
  RoutedExperts Take(llama_context* context, const llama_batch& batch, const int32_t* sequences) const;

 private:
  struct OfLayer {
    int32_t layer;
    int64_t used;
    std::vector<int32_t> ids;  // (tokens in the engine's order, used)
  };

  static bool See(ggml_tensor* node, bool is_asked, void* record);
  void Read(const ggml_tensor* node);
  // (tokens) index into the batch of each token, in the order in which it was computed; empty: it is not known.
  std::vector<int32_t> OrderOf(llama_context* context, const llama_batch& batch, const int32_t* sequences) const;

  bool is_on_ = false;
  bool is_unified_ = false, is_recurrent_ = false;
  int32_t pass_tokens_ = 0;      // of one graph at most
  std::vector<int32_t> tokens_;  // as the graphs read them
  std::vector<OfLayer> layers_;  // ascending
};

}  // namespace onpolicy
