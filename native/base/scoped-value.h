// A variable gets another value until a scope ends, by return or by exception.
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
