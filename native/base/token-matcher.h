// One sequence under a constraint, as the sampling of its tokens sees it: all that the addon and the grammar addon have in
// common. Its memory belongs to the library that made it, and no call throws.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace onpolicy {

// Changes with every change of this file: a handle of another version is refused.
constexpr uint64_t kTokenMatcherVersion = 1;

// Use one matcher from one thread at a time; matchers of the same constraint may run in parallel.
class TokenMatcher {
 public:
  virtual ~TokenMatcher() = default;

  virtual uint32_t vocabulary_size() const noexcept = 0;
  uint32_t mask_words() const noexcept { return (vocabulary_size() + 31) / 32; }
  // Writes `mask_words()` words, bit = token allowed. Returns whether every token is allowed.
  virtual bool FillMask(uint32_t* mask) noexcept = 0;
  // False, with the state unchanged, when the token is not allowed.
  virtual bool Accept(uint32_t token) noexcept = 0;
  // True when end of sequence is allowed here.
  virtual bool IsComplete() noexcept = 0;
  // True once an end-of-sequence token was accepted.
  virtual bool IsEnded() const noexcept = 0;
  // True when nothing but the end may follow, or it came.
  virtual bool IsFinal() noexcept = 0;
  // Tokens that every continuation starts with, split as the model would split their text. Valid until the next call of it.
  virtual std::span<const uint32_t> ForcedTokens() noexcept = 0;
  // Removes the last tokens; false when there are fewer.
  virtual bool Rollback(size_t count) noexcept = 0;
  // The state before the last `back` tokens; other constraints have other numbers. 0: there are fewer tokens.
  virtual uint64_t StateBefore(size_t back) const noexcept = 0;
};

}  // namespace onpolicy
