// Work on several threads -> its first exception, thrown on the thread that waits for them. An exception that left a thread would end the
// process.
#pragma once
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace onpolicy {

// The first exception of several threads.
class ThreadFailure {
 public:
  // Runs `work` and stores its exception.
  template <typename Work>
  void Keep(const Work& work) noexcept {
    try {
      work();
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!first_) first_ = std::current_exception();
    }
  }

  // Throws the stored exception. Must be called when the threads have ended.
  void Rethrow() {
    if (first_) std::rethrow_exception(std::exchange(first_, nullptr));
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};

// Runs work(0) to work(count - 1) on separate threads, work(0) on this one.
template <typename Work>
void OnThreads(int count, const Work& work) {
  ThreadFailure failure;
  std::vector<std::thread> others;
  failure.Keep([&] {
    others.reserve(static_cast<size_t>(count));
    for (int i = 1; i < count; ++i) others.emplace_back([&, i] { failure.Keep([&] { work(i); }); });
    work(0);
  });
  for (std::thread& other : others) other.join();
  failure.Rethrow();
}

}  // namespace onpolicy
