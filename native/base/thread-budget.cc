#include "base/thread-budget.h"

#include <algorithm>
#include <limits>
#include <new>

namespace onpolicy {
namespace {

// Seconds between two readings of the core times. The counters of systems advance in steps of 10 to 16 ms.
constexpr double kPause = 0.1;
// Looks that are older than this are ignored.
constexpr double kOld = 2;
// Most time that readings may take, as a part of all time.
constexpr double kLook = 0.002;
// A core counts if other programs leave this part of it. With a larger part an additional thread helps, with a smaller one fewer threads
// are faster.
constexpr double kToKeep = 0.55, kToTake = 0.7;
// Seconds between trials of one more thread. Programs that yield to this process, such as those of a lower priority, make cores look busy
// until it uses them.
constexpr double kFirstTrial = 1, kLastTrial = 32;
// Pause after a failed trial, as a multiple of its duration. Beside several programs, a step with one thread too many takes a second.
constexpr double kTrialDistance = 20;

}  // namespace

ThreadBudget::ThreadBudget(int cores, Source source)
    : cores_(cores), source_(std::move(source)), threads_(cores), last_(source_.read()), next_look_(source_.now() + kPause), trial_distance_(kFirstTrial) {}

// Never destroyed, because its users may be destroyed after other statics.
ThreadBudget& ThreadBudget::Shared() {
  static auto* budget = new ThreadBudget(UsableCores(), {SteadySeconds, [] { return ReadCoreTimes(); }});
  return *budget;
}

int ThreadBudget::Begin(int most) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++running_;
  if (most > 1) Measure(kOld);
  return std::clamp(threads_ / running_, 1, most);
}

// A reading at the end counts however long the computation took, because the reading before it was made at most one pause before its start.
void ThreadBudget::End(int most) {
  const std::lock_guard<std::mutex> lock(mutex_);
  --running_;
  if (most <= 1) return;
  try {
    Measure(std::numeric_limits<double>::infinity());
  } catch (const std::bad_alloc&) {  // destructors call this: the reading is skipped
  }
}

void ThreadBudget::Look() {
  const std::lock_guard<std::mutex> lock(mutex_);
  Measure(kOld);
}

void ThreadBudget::Measure(double old) {
  const double begun = source_.now();
  if (begun < next_look_) return;
  const std::optional<CoreTimes> now = source_.read();
  const double ended = source_.now();
  shortest_look_ = std::min(shortest_look_, ended - begun);  // the shortest one, because others were interrupted
  next_look_ = ended + std::max(kPause, shortest_look_ / kLook);
  const double seconds = now && last_ ? now->now - last_->now : 0;
  if (seconds > 0 && seconds < old) Decide((now->idle - last_->idle + now->own - last_->own) / seconds, ended);
  last_ = now;
}

void ThreadBudget::Decide(double free_cores, double now) {
  const auto threads_of = [&](double least) { return std::clamp(static_cast<int>(free_cores + 1 - least), 1, cores_); };
  const int kept = threads_of(kToKeep), taken = threads_of(kToTake);
  if (kept < threads_) {
    const double longer = std::max(2 * trial_distance_, kTrialDistance * (now - next_trial_));
    trial_distance_ = is_trial_ ? std::min(longer, kLastTrial) : kFirstTrial;
    threads_ = kept;
    is_trial_ = false;
    next_trial_ = now + trial_distance_;
  } else if (taken > threads_) {
    threads_ = taken;
    is_trial_ = false;
  } else if (!is_trial_ && threads_ < cores_ && now >= next_trial_) {
    ++threads_;
    is_trial_ = true;
    next_trial_ = now;
  } else {
    is_trial_ = false;
  }
}

}  // namespace onpolicy
