// Passes over recurrent sequences -> the number of last tokens that can be taken back from each sequence's state.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace onpolicy {

// The engine keeps a state for each of the last tokens of a sequence's last pass, except the first. Passes of other sequences move the
// state without the older ones, and a state can be taken back only once. So each pass discards what could be cut before.
class Rollback {
 public:
  // `most`: number of tokens for which the engine keeps states.
  void Begin(size_t sequences, uint32_t most) {
    most_ = most;
    left_.assign(sequences, 0);
    is_cut_.assign(sequences, false);
  }

  uint32_t most() const { return most_; }

  // Records a pass that computed tokens of these sequences, (count).
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

  // Records that the last `tokens` of a sequence are taken back. Returns false if they cannot be.
  bool Cut(int32_t sequence, int32_t tokens) {
    const auto at = static_cast<size_t>(sequence);
    if (tokens <= 0) return true;
    if (static_cast<uint32_t>(tokens) > left_[at]) return false;
    left_[at] = 0;
    is_cut_[at] = true;
    return true;
  }

  // Records that the sequence has another state than its last pass left, or shares it.
  void Replace(int32_t sequence) {
    left_[static_cast<size_t>(sequence)] = 0;
    is_cut_[static_cast<size_t>(sequence)] = false;
  }
  // Records that the sequence's state is now shared with a copy.
  void Share(int32_t sequence) { left_[static_cast<size_t>(sequence)] = 0; }

  // Returns true if the sequence was taken back and has not computed since. A copy would not get its current state.
  bool IsCut(int32_t sequence) const { return is_cut_[static_cast<size_t>(sequence)]; }

 private:
  uint32_t most_ = 0;
  std::vector<uint32_t> left_;  // (sequences) tokens that can be cut
  std::vector<bool> is_cut_;    // (sequences)
};

}  // namespace onpolicy
