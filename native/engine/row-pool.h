// Rows of one step -> work on a few threads. The caller works too, so that a pool of size 1 starts no thread.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/threads.h"

namespace onpolicy {

class RowPool {
 public:
  // Called with a row and the number of the worker that runs it: 0 to size - 1.
  using Work = std::function<void(int row, int worker)>;

  explicit RowPool(int size) {
    threads_.reserve(static_cast<size_t>(size));
    try {
      for (int worker = 1; worker < size; ++worker) threads_.emplace_back([this, worker] { Serve(worker); });
    } catch (const std::system_error&) {  // no more threads available: the others do the work
    }
  }

  ~RowPool() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  int size() const { return static_cast<int>(threads_.size()) + 1; }

  // Runs work(row, worker) for every row and returns when all are done. Throws the first exception of `work`.
  void Run(int rows, const Work& work) {
    if (rows <= 1 || threads_.empty()) {
      for (int row = 0; row < rows; ++row) work(row, 0);
      return;
    }
    Start(rows, work);
    Finish();
  }

  // Starts the same without the caller, which must call Finish. `work` must live until then.
  void Start(int rows, const Work& work) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      work_ = &work;
      rows_ = rows;
      next_row_ = 0;
      is_open_ = true;
      ++round_;
    }
    wake_.notify_all();
  }

  // Helps with the remaining rows and returns, or throws, when all are done. Does not wait for threads that have not begun.
  void Finish() {
    failure_.Keep([this] { Drain(0); });
    {
      std::unique_lock<std::mutex> lock(mutex_);
      is_open_ = false;
      done_.wait(lock, [this] { return busy_ == 0; });
    }
    failure_.Rethrow();
  }

 private:
  void Drain(int worker) {
    for (int row = next_row_++; row < rows_; row = next_row_++) (*work_)(row, worker);
  }

  void Serve(int worker) {
    uint64_t seen = 0;
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stopping_ || round_ != seen; });
      if (stopping_) return;
      seen = round_;
      if (!is_open_) continue;
      ++busy_;
      lock.unlock();
      failure_.Keep([&] { Drain(worker); });
      lock.lock();
      if (--busy_ == 0) done_.notify_one();
    }
  }

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  ThreadFailure failure_;
  const Work* work_ = nullptr;
  std::atomic<int> next_row_{0};
  int rows_ = 0;
  int busy_ = 0;  // threads that may still read work_
  bool is_open_ = false;  // threads that have not begun may still begin
  uint64_t round_ = 0;
  bool stopping_ = false;
};

}  // namespace onpolicy
