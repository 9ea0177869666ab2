// A list that grows page by page: adding an entry never moves the others.
#pragma once
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace onpolicy::grammar {

template <typename T>
class PagedList {
 public:
  PagedList() = default;
  PagedList(PagedList&&) = default;
  PagedList& operator=(PagedList&&) = default;
  PagedList(const PagedList&) = delete;
  PagedList& operator=(const PagedList& other) {
    pages_.clear();
    size_ = 0;
    for (size_t at = 0; at < other.size(); at++) push_back(other[at]);
    return *this;
  }
  T& operator[](size_t at) { return pages_[at / kPageEntries][at % kPageEntries]; }
  const T& operator[](size_t at) const { return pages_[at / kPageEntries][at % kPageEntries]; }
  size_t size() const { return size_; }
  // Returns the entry at `at`. Adds empty entries up to there.
  T& Reach(size_t at) {
    while (at >= size_) push_back(T{});
    return (*this)[at];
  }
  void push_back(T entry) {
    if (size_ == pages_.size() * kPageEntries) pages_.push_back(std::make_unique<T[]>(kPageEntries));
    (*this)[size_++] = std::move(entry);
  }

 private:
  static constexpr size_t kPageEntries = 256;

  std::vector<std::unique_ptr<T[]>> pages_;
  size_t size_ = 0;
};

}  // namespace onpolicy::grammar
