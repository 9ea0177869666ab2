// The operations of an encoder's graph -> pauses between them, and long ones cut into pieces along their rows. The graph belongs
// to mtmd: it is seen through the engine's callback before and after operations.
#pragma once
#include <ggml-backend.h>
#include <ggml.h>

#include <cstdint>

#include "media/decoder.h"

namespace onpolicy {

class GraphPace {
 public:
  GraphPace(const EncodePace& pace, int32_t threads) : pace_(pace), threads_(threads) {}
  ~GraphPace();
  GraphPace(const GraphPace&) = delete;
  GraphPace& operator=(const GraphPace&) = delete;

  // Before an operation is computed: whether its result is wanted at once. The engine computes those that are not wanted
  // together with the next one that is.
  bool Before(ggml_tensor* result);
  // After a wanted one: whether to go on.
  bool After() const { return !is_aborted_; }

  bool Abort() { return is_aborted_ = true; }
  bool is_aborted() const { return is_aborted_; }

 private:
  bool Pause(double work);
  // Computes `result` in `pieces`, and leaves nothing of it for the engine. False: the engine must compute it.
  bool ComputeInPieces(ggml_tensor* result, double work, int64_t pieces);
  bool ComputePiece(const ggml_tensor* result, int64_t first, int64_t rows);

  const EncodePace& pace_;
  const int32_t threads_;
  ggml_backend_t backend_ = nullptr;  // computes pieces
  bool wants_all_ = false;            // the graph has long operations: each is computed by itself
  bool has_pending_ = false;          // operations before this one are not computed yet
  bool is_aborted_ = false;
};

}  // namespace onpolicy
