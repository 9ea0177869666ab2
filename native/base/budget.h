// Work done -> true if a phase may do more. One clock counts all work; a phase is spent when the clock passes its end. A spent phase
// answers "unknown", and its caller takes the safe side: a compilation is refused, a mask lacks tokens of several bytes, reports that and
// is not cached, and a simplification leaves things as they are. A compilation that was cancelled, or that exceeds its total work, ends
// with a Failure in the call that counts its work. Numbers: limits.h.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "base/limits.h"
#include "base/scoped-value.h"
#include "base/status.h"

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

// Thrown when a compilation has used up its work.
struct WorkSpent : Failure {
  WorkSpent() : Failure("UNSUPPORTED", "the constraint is too complex to enforce") {}
};

class Budget {
 public:
  static constexpr uint64_t kUnbounded = UINT64_MAX;

  Budget() {
    ends_.fill(kUnbounded);
    Begin(Phase::kCompile, limits::kCompileWork);
    Begin(Phase::kShapes, limits::kShapeWork);
  }
  void Spend(uint64_t work) {
    spent_ += work;
    if (spent_ >= next_look_) [[unlikely]] Look();
  }
  // From now until Unwatch, work ends with a Failure of ABORTED once `*cancelled` is not 0, and with WorkSpent after `most` of it.
  void Watch(const volatile int32_t* cancelled, uint64_t most) {
    cancelled_ = cancelled;
    most_ = EndOf(most);
    Look();
  }
  void Unwatch() { next_look_ = kUnbounded; }
  uint64_t spent() const { return spent_; }
  bool IsSpent(Phase phase) const { return spent_ > end(phase); }
  uint64_t end(Phase phase) const { return ends_[static_cast<size_t>(phase)]; }
  // Returns the end of a phase of `work` that begins now.
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
  // Counts an answer that is incomplete because the phase was spent.
  void Cut(Phase phase) { cuts_[static_cast<size_t>(phase)]++; }
  // Number of incomplete answers of the phase.
  uint64_t cuts(Phase phase) const { return cuts_[static_cast<size_t>(phase)]; }
  bool was_cut(Phase phase) const { return cuts(phase) > 0; }

 private:
  void Look() {
    if (*cancelled_ != 0) throw Failure("ABORTED", "the compilation was aborted");
    if (spent_ >= most_) throw WorkSpent();
    next_look_ = std::min(most_, spent_ + limits::kLookEvery);
  }

  uint64_t spent_ = 0;
  uint64_t next_look_ = kUnbounded;
  uint64_t most_ = kUnbounded;
  const volatile int32_t* cancelled_ = nullptr;  // while work is watched
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
