// Passes over recurrent sequences -> how many of a sequence's last tokens its state can still be taken back.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace onpolicy {

// The engine keeps a state for each of the last tokens of a sequence's last pass, its first one excepted. It moves states in passes
// of other sequences, without the older ones, and takes a state back once: so the next pass, whosever it is, ends what can be cut.
class Rollback {
 public:
  // `most`: tokens for which the engine keeps states.
  void Begin(size_t sequences, uint32_t most) {
    most_ = most;
    left_.assign(sequences, 0);
    is_cut_.assign(sequences, false);
  }

  uint32_t most() const { return most_; }

  // One pass computed tokens of these sequences, (count).
  void Pass(const int32_t* sequences, size_t count) {
    left_.assign(left_.size(), 0);
    std::vector<uint32_t> tokens(left_.size(), 0);
    for (size_t i = 0; i < count; ++i) {
      const auto sequence = static_cast<size_t>(sequences[i]);
      is_cut_[sequence] = false;
      left_[sequence] = tokens[sequence] < most_ ? tokens[sequence] : most_;
      ++tokens[sequence];
    }
  }

  // Undoes this many tokens of a sequence. False: it cannot.
  bool Cut(int32_t sequence, int32_t tokens) {
    const auto at = static_cast<size_t>(sequence);
    if (tokens <= 0) return true;
    if (static_cast<uint32_t>(tokens) > left_[at]) return false;
    left_[at] = 0;
    is_cut_[at] = true;
    return true;
  }

  // The sequence has another state than the one its last pass left, or shares it.
  void Replace(int32_t sequence) {
    left_[static_cast<size_t>(sequence)] = 0;
    is_cut_[static_cast<size_t>(sequence)] = false;
  }
  // Its state is shared with a copy from now on.
  void Share(int32_t sequence) { left_[static_cast<size_t>(sequence)] = 0; }

  // Whether it was taken back and has not computed since: its state is not the one that a copy would get.
  bool IsCut(int32_t sequence) const { return is_cut_[static_cast<size_t>(sequence)]; }

 private:
  uint32_t most_ = 0;
  std::vector<uint32_t> left_;  // (sequences) tokens that can be cut
  std::vector<bool> is_cut_;    // (sequences)
};

}  // namespace onpolicy
