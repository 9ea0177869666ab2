#include "llama/compute-turns.h"

#include <algorithm>

namespace onpolicy {
namespace {

using Clock = std::chrono::steady_clock;

// A slice is as long as the last step, but never as long as the step of a long prompt.
constexpr Clock::duration kLongestSlice = std::chrono::milliseconds(200);

}  // namespace

ComputeTurns& ComputeTurns::Shared() {
  static ComputeTurns turns;
  return turns;
}

Clock::time_point ComputeTurns::BeginStep() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (is_encoding_ || waiting_encodes_ > 0) {
    ++waiting_steps_;
    changed_.wait(lock, [this, ended = slices_] { return slices_ != ended && !is_encoding_; });
    --admitted_steps_;
  }
  ++running_steps_;
  return Clock::now();
}

void ComputeTurns::EndStep(Clock::time_point begun) {
  std::lock_guard<std::mutex> lock(mutex_);
  --running_steps_;
  last_step_ = Clock::now() - begun;
  changed_.notify_all();
}

Clock::time_point ComputeTurns::BeginSlice() {
  std::unique_lock<std::mutex> lock(mutex_);
  ++waiting_encodes_;
  changed_.wait(lock, [this] { return !is_encoding_ && admitted_steps_ == 0 && running_steps_ == 0; });
  --waiting_encodes_;
  is_encoding_ = true;
  return Clock::now();
}

void ComputeTurns::EndSlice() {
  std::lock_guard<std::mutex> lock(mutex_);
  is_encoding_ = false;
  ++slices_;
  admitted_steps_ = waiting_steps_;
  waiting_steps_ = 0;
  changed_.notify_all();
}

bool ComputeTurns::IsOver(std::chrono::duration<double> length) {
  std::lock_guard<std::mutex> lock(mutex_);
  return waiting_steps_ > 0 && length > std::min(last_step_, kLongestSlice);
}

void ComputeTurns::Encode::Pause(double work) {
  const Clock::time_point now = Clock::now();
  const std::chrono::duration<double> passed = now - paused_;
  if (work_ > 0) seconds_per_work_ = passed.count() / work_;
  const bool is_begun = work_ > 0;
  paused_ = now;
  work_ = work;
  const std::chrono::duration<double> next(seconds_per_work_ * work);
  if (!is_begun || !turns_.IsOver(now - begun_ + next)) return;
  turns_.EndSlice();
  Begin();
}

}  // namespace onpolicy
