#include "base/compute-turns.h"

#include <algorithm>
#include <limits>

namespace onpolicy {
namespace {

using Clock = ComputeTurns::Clock;

// Longest slice, also if steps are as long as those of a long prompt.
constexpr Clock::duration kLongestSlice = std::chrono::milliseconds(200);
// Length of a slice as a part of a step. It is below 1 because the time of an operation is only estimated.
constexpr double kSliceOfStep = 0.8;
// Longest operation, as a part of a slice.
constexpr double kOperationOfSlice = 0.25;
// Multiplications of the longest operation before any operation was timed.
constexpr double kFirstWork = 2e8;
// Time after a step during which more steps are expected. Streams run steps more often, also beside an encode.
constexpr Clock::duration kCompany = std::chrono::milliseconds(500);
// Time for which the turn of an aborted step is kept for the step that aborted it.
constexpr Clock::duration kKept = std::chrono::milliseconds(10);

}  // namespace

ComputeTurns& ComputeTurns::Shared() {
  static ComputeTurns turns;
  return turns;
}

void ComputeTurns::Wake() {
  std::lock_guard<std::mutex> lock(mutex_);
  changed_.notify_all();
}

bool ComputeTurns::BeginStep(const std::function<bool()>& is_aborted) {
  std::unique_lock<std::mutex> lock(mutex_);
  const bool is_kept = Clock::now() < kept_until_;
  if (is_encoding_ || (waiting_encodes_ > 0 && !is_kept)) {
    ++waiting_steps_;
    const auto is_admitted = [this, ended = slices_] { return slices_ != ended && !is_encoding_; };
    changed_.wait(lock, [&] { return is_admitted() || is_aborted(); });
    if (!is_admitted()) {
      --waiting_steps_;
      return false;
    }
    --admitted_steps_;
  }
  kept_until_ = {};
  ++running_steps_;
  return true;
}

void ComputeTurns::EndStep(Clock::time_point begun, bool is_aborted) {
  std::lock_guard<std::mutex> lock(mutex_);
  --running_steps_;
  const Clock::time_point now = last_end_ = Clock::now();
  if (is_aborted) kept_until_ = now + kKept;
  else last_steps_[ended_steps_++ % last_steps_.size()] = now - begun;
  changed_.notify_all();
}

Clock::time_point ComputeTurns::BeginSlice() {
  std::unique_lock<std::mutex> lock(mutex_);
  ++waiting_encodes_;
  for (;;) {
    changed_.wait(lock, [this] { return !is_encoding_ && admitted_steps_ == 0 && running_steps_ == 0; });
    if (Clock::now() >= kept_until_) break;
    changed_.wait_until(lock, kept_until_);
  }
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

bool ComputeTurns::IsInCompany() const {
  return running_steps_ > 0 || waiting_steps_ > 0 || (ended_steps_ > 0 && Clock::now() - last_end_ < kCompany);
}

// Uses the shortest of the last steps, because a step with a prompt is much longer than the next one.
Clock::duration ComputeTurns::LongestSlice() const {
  if (ended_steps_ == 0) return kLongestSlice;
  const size_t known = std::min(ended_steps_, last_steps_.size());
  const Clock::duration step = *std::min_element(last_steps_.begin(), last_steps_.begin() + static_cast<std::ptrdiff_t>(known));
  return std::min(std::chrono::duration_cast<Clock::duration>(kSliceOfStep * step), kLongestSlice);
}

bool ComputeTurns::IsOver(std::chrono::duration<double> length) {
  std::lock_guard<std::mutex> lock(mutex_);
  return waiting_steps_ > 0 && length > LongestSlice();
}

std::chrono::duration<double> ComputeTurns::Encode::Expected(double work) const {
  const auto known = taken_.find(work);
  if (known != taken_.end()) return std::chrono::duration<double>(known->second);
  return std::chrono::duration<double>(done_ > 0 ? work * seconds_ / done_ : 0);
}

void ComputeTurns::Encode::Pause(double work) {
  const Clock::time_point now = Clock::now();
  const bool is_begun = work_ > 0;
  if (is_begun) {
    const double taken = std::chrono::duration<double>(now - paused_).count();
    taken_[work_] = taken;
    seconds_ += taken;
    done_ += work_;
  }
  paused_ = now;
  work_ = work;
  if (!is_begun || !turns_.IsOver(now - begun_ + Expected(work))) return;
  turns_.EndSlice();
  Begin();
}

double ComputeTurns::Encode::LongestWork() {
  std::lock_guard<std::mutex> lock(turns_.mutex_);
  if (!turns_.IsInCompany()) return std::numeric_limits<double>::infinity();
  if (done_ <= 0) return kFirstWork;
  return kOperationOfSlice * std::chrono::duration<double>(turns_.LongestSlice()).count() * done_ / seconds_;
}

}  // namespace onpolicy
