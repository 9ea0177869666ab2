// Load of the cores -> the number of threads of this process's computations: as many as there are cores that no other process uses. An
// operation ends when its slowest thread has ended, so a thread that shares its core with another program delays all others.
#pragma once
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>

#include "base/cores.h"

namespace onpolicy {

class ThreadBudget {
 public:
  // Functions by which it looks at the cores.
  struct Source {
    std::function<double()> now;  // seconds
    std::function<std::optional<CoreTimes>()> read;
  };

  ThreadBudget(int cores, Source source);

  // Returns the budget of this process.
  static ThreadBudget& Shared();

  // An object that computes repeatedly: a context, an embedder, a trainer.
  class User {
   public:
    explicit User(int most, ThreadBudget& budget = Shared()) : budget_(budget), most_(most), last_(most) {}
    // Number of threads of its last computation.
    int last() const { return last_; }

   private:
    friend class ThreadBudget;
    ThreadBudget& budget_;
    const int most_;
    std::atomic<int> last_;
  };

  // The threads of one computation of a user. Computations at the same time share the budget.
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

  // Measures the load. Called while a model loads, so that its first computation has a measured number of threads, too.
  void Look();

 private:
  int Begin(int most);
  void End(int most);
  // Reads the core times, unless it did so a moment ago. The last reading is ignored if it is more than `old` seconds ago.
  void Measure(double old);
  void Decide(double free_cores, double now);

  const int cores_;
  const Source source_;
  std::mutex mutex_;
  int running_ = 0;  // number of running computations
  int threads_;      // number of threads of all computations together
  std::optional<CoreTimes> last_;
  double next_look_, shortest_look_ = 1;
  bool is_trial_ = false;  // true during a trial with one thread more than seemed free
  double next_trial_ = 0, trial_distance_;
};

}  // namespace onpolicy
