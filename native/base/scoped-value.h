// A place has another value for as long as a scope lasts, however it ends.
#pragma once
#include <utility>

namespace onpolicy::grammar {

template <typename T>
class ScopedValue {
 public:
  ScopedValue(T& place, T value) : place_(place), outer_(std::exchange(place, std::move(value))) {}
  ~ScopedValue() { place_ = std::move(outer_); }
  ScopedValue(const ScopedValue&) = delete;
  ScopedValue& operator=(const ScopedValue&) = delete;

 private:
  T& place_;
  T outer_;
};

}  // namespace onpolicy::grammar
