// Work done -> whether a phase may do more. One clock counts all work; a phase is spent when the clock passes its end.
// A spent phase answers "unknown", and its caller takes the safe side: a compilation is refused, a mask lacks tokens of
// several bytes, says so and is not cached, and a simplification leaves things as they are. Numbers: limits.h.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "base/limits.h"
#include "base/scoped-value.h"

namespace onpolicy::grammar {

enum class Phase : uint8_t {
  kCompile,       // until a constraint is bound
  kShapes,        // the combinations of a schema, until then
  kStep,          // one call of a bound constraint: beyond it no new state is searched, and bytes are no longer tried
  kMask,          // tokens of several bytes in one mask
  kTerminalByte,  // tokens of one byte inside of a terminal
  kSearch,        // emptiness searches of one step
  kClosure,       // one closure
  kLook,          // one look ahead
  kDerivative,    // one derivative
  kCount,         // of phases
};

class Budget {
 public:
  static constexpr uint64_t kUnbounded = UINT64_MAX;

  Budget() {
    ends_.fill(kUnbounded);
    Begin(Phase::kCompile, limits::kCompileWork);
    Begin(Phase::kShapes, limits::kShapeWork);
  }
  void Spend(uint64_t work) { spent_ += work; }
  uint64_t spent() const { return spent_; }
  bool IsSpent(Phase phase) const { return spent_ > end(phase); }
  uint64_t end(Phase phase) const { return ends_[static_cast<size_t>(phase)]; }
  // Where a phase of so much work ends that begins now.
  uint64_t EndOf(uint64_t work) const { return work > kUnbounded - spent_ ? kUnbounded : spent_ + work; }
  void Begin(Phase phase, uint64_t work) { ends_[static_cast<size_t>(phase)] = EndOf(work); }
  // Begins a part of another phase, which ends with it at the latest.
  void Begin(Phase phase, uint64_t work, Phase outer) {
    ends_[static_cast<size_t>(phase)] = std::min(EndOf(work), end(outer));
  }
  // Begins a phase that ends with the scope.
  [[nodiscard]] ScopedValue<uint64_t> Enter(Phase phase, uint64_t work) {
    return {ends_[static_cast<size_t>(phase)], EndOf(work)};
  }
  // Notes that a phase was spent and its answer lacks something.
  void Cut(Phase phase) { cuts_[static_cast<size_t>(phase)]++; }
  // How often that was so.
  uint64_t cuts(Phase phase) const { return cuts_[static_cast<size_t>(phase)]; }
  bool was_cut(Phase phase) const { return cuts(phase) > 0; }

 private:
  uint64_t spent_ = 0;
  std::array<uint64_t, static_cast<size_t>(Phase::kCount)> ends_;  // by phase
  std::array<uint64_t, static_cast<size_t>(Phase::kCount)> cuts_{};  // by phase
};

// A number of steps within a phase, counted down.
class Allowance {
 public:
  explicit Allowance(uint32_t steps = 0) : left_(steps) {}
  bool IsSpent() const { return left_ == 0; }
  void Spend(uint32_t steps = 1) { left_ -= std::min(left_, steps); }
  uint32_t left() const { return left_; }

 private:
  uint32_t left_;
};

}  // namespace onpolicy::grammar
