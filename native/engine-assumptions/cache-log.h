// The engine's log while it makes a context -> the bytes of its cache: keys and values, and states of sequences.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "engine-assumptions/library.h"
#include "engine-assumptions/table/assumptions.h"
#include "engine-assumptions/table/names.h"

namespace onpolicy {

class CacheLog {
 public:
  CacheLog() {
    id_ = AddLogSink([this, thread = std::this_thread::get_id()](int, const std::string& text) {
      if (std::this_thread::get_id() == thread) Read(text);
    });
  }
  ~CacheLog() { RemoveLogSink(id_); }
  CacheLog(const CacheLog&) = delete;
  CacheLog& operator=(const CacheLog&) = delete;

  // Compares the bytes that were logged with those that were expected. The log has hundredths of MiB.
  void Compare(double expected) const {
    if (lines_ == 0) return;
    const bool is_equal = std::abs(bytes_ - expected) <= lines_ * kRounding;
    char problem[160];
    std::snprintf(problem, sizeof problem, "the cache of a model takes %.2f MiB, and %.2f MiB were expected", bytes_ / kMib, expected / kMib);
    Check(Assumed::kCacheBytes, is_equal ? "" : problem);
  }

 private:
  static constexpr double kMib = 1 << 20, kRounding = 0.01 * kMib;

  void Read(const std::string& text) {
    for (const char* name : kCacheSizes) {
      const size_t at = text.find(name);
      double mib = 0;
      if (at == std::string::npos || std::sscanf(text.c_str() + at + std::strlen(name), " = %lf MiB", &mib) != 1) continue;
      bytes_ += mib * kMib;
      ++lines_;
    }
  }

  int id_;
  int lines_ = 0;
  double bytes_ = 0;
};

}  // namespace onpolicy
