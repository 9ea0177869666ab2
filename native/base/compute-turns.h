// Steps and encodes on the same cores -> turns. Threads of both at once would wait for each other at every operation. A step waits for at
// most one slice of an encode, and a slice only for the steps that run or waited before it.
#pragma once
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

namespace onpolicy {

class ComputeTurns {
 public:
  using Clock = std::chrono::steady_clock;

  // Returns the turns of this process.
  static ComputeTurns& Shared();

  // One step. Several may run at once.
  class Step {
   public:
    // Waits for its turn. `is_aborted` ends the wait: call Wake when it changes. The step keeps the function and calls it again at its end.
    explicit Step(std::function<bool()> is_aborted)
        : turns_(Shared()), is_aborted_(std::move(is_aborted)), has_turn_(turns_.BeginStep(is_aborted_)), begun_(Clock::now()) {}
    ~Step() {
      if (has_turn_) turns_.EndStep(begun_, is_aborted_());
    }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

    // Returns false if the step was aborted before its turn.
    bool has_turn() const { return has_turn_; }

   private:
    ComputeTurns& turns_;
    const std::function<bool()> is_aborted_;
    const bool has_turn_;
    const Clock::time_point begun_;
  };

  // One encode, in slices. Slices of different encodes run one after the other.
  class Encode {
   public:
    Encode() : turns_(Shared()) { Begin(); }
    ~Encode() { turns_.EndSlice(); }
    Encode(const Encode&) = delete;
    Encode& operator=(const Encode&) = delete;

    // Called before operations with the multiplications that they take. Lets waiting steps run if the slice would otherwise
    // last longer than a step. Each slice computes something.
    void Pause(double work);
    // Returns the recommended maximum work of one operation; a longer one should be split. Infinite while no steps run that would wait for it.
    double LongestWork();
    uint32_t slices() const { return slices_; }

   private:
    void Begin() {
      begun_ = paused_ = turns_.BeginSlice();
      ++slices_;
    }
    std::chrono::duration<double> Expected(double work) const;

    ComputeTurns& turns_;
    Clock::time_point begun_;
    Clock::time_point paused_;  // the last call of Pause in this slice, or its begin
    double work_ = 0;           // since then
    double done_ = 0;           // work of the operations before
    double seconds_ = 0;        // which they took
    std::map<double, double> taken_;  // by work: seconds of the last operation with as much
    uint32_t slices_ = 0;
  };

  // Must be called when the answer of a step's `is_aborted` changes.
  void Wake();

 private:
  bool BeginStep(const std::function<bool()>& is_aborted);
  void EndStep(Clock::time_point begun, bool is_aborted);
  Clock::time_point BeginSlice();
  void EndSlice();
  // Returns true if steps run or wait, or did so recently.
  bool IsInCompany() const;
  // Returns the maximum duration of a slice.
  Clock::duration LongestSlice() const;
  // Returns true if a slice should end that would last `length` after its next operations.
  bool IsOver(std::chrono::duration<double> length);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_encoding_ = false;
  int waiting_encodes_ = 0;
  int waiting_steps_ = 0;   // steps that wait for the end of a slice
  int admitted_steps_ = 0;  // steps that waited for it and begin before the next slice
  int running_steps_ = 0;
  uint64_t slices_ = 0;     // number of slices that have ended
  Clock::time_point kept_until_{};  // before this time no slice begins: a step was aborted, and the one in its place may follow
  std::array<Clock::duration, 4> last_steps_{};
  size_t ended_steps_ = 0;
  Clock::time_point last_end_{};
};

}  // namespace onpolicy
