// Steps and encodes on the same cores -> turns. Threads of both at once would wait for each other at every operation. No step
// waits for more than one slice of an encode, no slice for more than the steps that run or waited before it.
#pragma once
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

namespace onpolicy {

class ComputeTurns {
 public:
  using Clock = std::chrono::steady_clock;

  // Those of the process.
  static ComputeTurns& Shared();

  // One step. Several may run at once.
  class Step {
   public:
    // Waits for its turn. `is_aborted` ends the wait: call Wake when it changes.
    explicit Step(const std::function<bool()>& is_aborted)
        : turns_(Shared()), is_aborted_(is_aborted), has_turn_(turns_.BeginStep(is_aborted)), begun_(Clock::now()) {}
    ~Step() {
      if (has_turn_) turns_.EndStep(begun_, is_aborted_());
    }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

    // False: it was aborted before.
    bool has_turn() const { return has_turn_; }

   private:
    ComputeTurns& turns_;
    const std::function<bool()>& is_aborted_;
    const bool has_turn_;
    const Clock::time_point begun_;
  };

  // One encode, in slices. Those of several encodes follow each other.
  class Encode {
   public:
    Encode() : turns_(Shared()) { Begin(); }
    ~Encode() { turns_.EndSlice(); }
    Encode(const Encode&) = delete;
    Encode& operator=(const Encode&) = delete;

    // Called before operations with the multiplications that they take. Lets steps run that wait, if the slice would else last
    // longer than one. Each slice computes something.
    void Pause(double work);
    // Of one operation: a longer one had better be cut. Infinite while nothing else steps: then nobody would wait for it.
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

  // After a change of what `is_aborted` of a step says.
  void Wake();

 private:
  bool BeginStep(const std::function<bool()>& is_aborted);
  void EndStep(Clock::time_point begun, bool is_aborted);
  Clock::time_point BeginSlice();
  void EndSlice();
  // Whether steps run or wait, or did a moment ago.
  bool IsInCompany() const;
  // How long a slice may be.
  Clock::duration LongestSlice() const;
  // Whether a slice should end that would have lasted so long after its next operations.
  bool IsOver(std::chrono::duration<double> length);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_encoding_ = false;
  int waiting_encodes_ = 0;
  int waiting_steps_ = 0;   // for the end of a slice that runs or waits
  int admitted_steps_ = 0;  // have waited for it: they begin before the next slice
  int running_steps_ = 0;
  uint64_t slices_ = 0;     // ended ones
  Clock::time_point kept_until_{};  // until then no slice begins: a step was aborted, the one in its place may come
  std::array<Clock::duration, 4> last_steps_{};
  size_t ended_steps_ = 0;
  Clock::time_point last_end_{};
};

}  // namespace onpolicy
