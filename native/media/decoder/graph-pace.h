// The operations of an encoder's graph -> pauses between them, and long ones split into pieces along their rows. The graph belongs
// to mtmd. It is observed by the engine's callback before and after operations.
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

  // Called before an operation is computed. Returns true if its result is wanted at once. The engine computes an unwanted one
  // together with the next wanted one.
  bool Before(ggml_tensor* result);
  // Called after a wanted operation. Returns true if the encode continues.
  bool After() const { return !is_aborted_; }

  bool Abort() { return is_aborted_ = true; }
  bool is_aborted() const { return is_aborted_; }

 private:
  bool Pause(double work);
  // Computes `result` in `pieces`, so that the engine need not. Returns false if the engine must compute it.
  bool ComputeInPieces(ggml_tensor* result, double work, int64_t pieces);
  bool ComputePiece(const ggml_tensor* result, int64_t first, int64_t rows);

  const EncodePace& pace_;
  const int32_t threads_;
  ggml_backend_t backend_ = nullptr;  // computes pieces
  bool wants_all_ = false;            // the graph has long operations, so each is computed separately
  bool has_pending_ = false;          // operations before this one are not computed yet
  bool is_aborted_ = false;
};

}  // namespace onpolicy
