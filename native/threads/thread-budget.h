// What the cores of this process did -> how many threads its computations take: as many as cores that nobody else uses. Operations
// of a computation end when the slowest thread has ended, so one that shares its core with another program holds up all others.
#pragma once
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>

#include "threads/cores.h"

namespace onpolicy {

class ThreadBudget {
 public:
  // Where it looks at the cores.
  struct Source {
    std::function<double()> now;  // seconds
    std::function<std::optional<CoreTimes>()> read;
  };

  ThreadBudget(int cores, Source source);

  // That of the process.
  static ThreadBudget& Shared();

  // What computes again and again: a context, an embedder, a trainer.
  class User {
   public:
    explicit User(int most, ThreadBudget& budget = Shared()) : budget_(budget), most_(most), last_(most) {}
    // Threads of its last computation.
    int last() const { return last_; }

   private:
    friend class ThreadBudget;
    ThreadBudget& budget_;
    const int most_;
    std::atomic<int> last_;
  };

  // Its threads for one computation. Those that run at once share the budget.
  class Share {
   public:
    explicit Share(User& user) : Share(user, user.most_) {}
    Share(User& user, int most) : budget_(user.budget_), most_(most), threads_(user.last_ = budget_.Begin(most)) {}
    ~Share() { budget_.End(most_); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    int threads() const { return threads_; }

   private:
    ThreadBudget& budget_;
    const int most_, threads_;
  };

  // While a model is loaded, so that its first computation is measured for, too.
  void Look();

 private:
  int Begin(int most);
  void End(int most);
  // Looks at the cores, unless it did so a moment ago. What it saw before is left out if that is so many seconds ago.
  void Measure(double old);
  void Decide(double free_cores, double now);

  const int cores_;
  const Source source_;
  std::mutex mutex_;
  int running_ = 0;  // computations
  int threads_;      // of all of them
  std::optional<CoreTimes> last_;
  double next_look_, shortest_look_ = 1;
  bool is_trial_ = false;  // with one thread more than seemed free
  double next_trial_ = 0, trial_distance_;
};

}  // namespace onpolicy
