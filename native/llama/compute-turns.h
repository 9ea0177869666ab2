// Steps and encodes on the same cores -> turns. Threads of both at once would wait for each other at every operation. No step
// waits for more than one slice of an encode, no slice for more than the steps that run or waited before it.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace onpolicy {

class ComputeTurns {
 public:
  // Those of the process.
  static ComputeTurns& Shared();

  // One step. Several may run at once.
  class Step {
   public:
    Step() : turns_(Shared()), begun_(turns_.BeginStep()) {}
    ~Step() { turns_.EndStep(begun_); }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    ComputeTurns& turns_;
    const std::chrono::steady_clock::time_point begun_;
  };

  // One encode, in slices. Those of several encodes follow each other.
  class Encode {
   public:
    Encode() : turns_(Shared()) { Begin(); }
    ~Encode() { turns_.EndSlice(); }
    Encode(const Encode&) = delete;
    Encode& operator=(const Encode&) = delete;

    // Called before operations with the multiplications that they take. Lets steps run that wait, if the slice would else last
    // longer than a step. Each slice computes something.
    void Pause(double work);
    uint32_t slices() const { return slices_; }

   private:
    void Begin() {
      begun_ = paused_ = turns_.BeginSlice();
      ++slices_;
    }

    ComputeTurns& turns_;
    std::chrono::steady_clock::time_point begun_;
    std::chrono::steady_clock::time_point paused_;  // the last call of Pause in this slice, or its begin
    double work_ = 0;                               // since then
    double seconds_per_work_ = 0;                   // of the operations before
    uint32_t slices_ = 0;
  };

 private:
  std::chrono::steady_clock::time_point BeginStep();
  void EndStep(std::chrono::steady_clock::time_point begun);
  std::chrono::steady_clock::time_point BeginSlice();
  void EndSlice();
  // Whether a slice should end that would have lasted so long after its next operations.
  bool IsOver(std::chrono::duration<double> length);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_encoding_ = false;
  int waiting_encodes_ = 0;
  int waiting_steps_ = 0;  // for the end of a slice that runs or waits
  int admitted_steps_ = 0;  // have waited for it: they begin before the next slice
  int running_steps_ = 0;
  uint64_t slices_ = 0;  // ended ones
  std::chrono::steady_clock::duration last_step_{};
};

}  // namespace onpolicy
