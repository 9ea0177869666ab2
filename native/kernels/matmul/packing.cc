#include "kernels/matmul/packing.h"

#ifdef __linux__
#include <sys/mman.h>

#include <algorithm>
#include <system_error>

#include "base/system-memory.h"

namespace onpolicy::matmul {
namespace {

constexpr size_t kLeast = size_t{64} << 20;
constexpr size_t kMost = size_t{1} << 30;  // about the memory that can be populated while a vocabulary is read; it is wasted if no weights can be packed
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, of Linux 5.14; older headers do not have it

}  // namespace

EarlyMemory::EarlyMemory(size_t bytes) : reserved_(bytes < kLeast ? 0 : RoundedToHugePages(bytes)), end_(std::min(reserved_, kMost)) {
  if (reserved_ == 0) return;
  memory_ = static_cast<std::byte*>(TakeHugePages(reserved_));
  if (!memory_) return;
  try {
    thread_ = std::thread([this] {
      for (size_t at = 0; at < end_; at += kHugePage)
        if (madvise(memory_ + at, kHugePage, kPopulateWrite) != 0) return;
    });
  } catch (const std::system_error&) {  // without a thread, the memory is populated when it is written
  }
}

void EarlyMemory::Stop() {
  end_ = 0;
  if (thread_.joinable()) thread_.join();
}

EarlyMemory::~EarlyMemory() {
  Stop();
  if (memory_ && taken_ < reserved_) FreeSystemMemory(memory_ + taken_, reserved_ - taken_);
}

void* EarlyMemory::Take(size_t bytes) {
  if (!memory_ || taken_ > 0 || bytes > reserved_) return nullptr;
  taken_ = bytes;
  end_ = std::min(bytes, kMost);
  return memory_;
}

}  // namespace onpolicy::matmul
#else
namespace onpolicy::matmul {

EarlyMemory::EarlyMemory(size_t) : reserved_(0), end_(0) {}
EarlyMemory::~EarlyMemory() {}
void EarlyMemory::Stop() {}
void* EarlyMemory::Take(size_t) { return nullptr; }

}  // namespace onpolicy::matmul
#endif
