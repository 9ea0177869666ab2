// One sequence under a constraint, as sampling sees it: the whole interface between the main addon and the grammar addon. Its memory
// belongs to the library that made it, and no call throws.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace onpolicy {

// Must change with every change of this file. A handle of another version is refused.
constexpr uint64_t kTokenMatcherVersion = 1;

// Use one matcher from one thread at a time; matchers of the same constraint may run in parallel.
class TokenMatcher {
 public:
  virtual ~TokenMatcher() = default;

  virtual uint32_t vocabulary_size() const noexcept = 0;
  uint32_t mask_words() const noexcept { return (vocabulary_size() + 31) / 32; }
  // Writes `mask_words()` words, bit = token allowed. Returns true if every token is allowed.
  virtual bool FillMask(uint32_t* mask) noexcept = 0;
  // Returns false, with the state unchanged, if the token is not allowed.
  virtual bool Accept(uint32_t token) noexcept = 0;
  // Returns true if the end of the sequence is allowed here.
  virtual bool IsComplete() noexcept = 0;
  // Returns true once an end-of-sequence token was accepted.
  virtual bool IsEnded() const noexcept = 0;
  // Returns true if only the end may follow, or it was accepted.
  virtual bool IsFinal() noexcept = 0;
  // Returns the tokens that every continuation starts with, split as the model would split their text. Valid until the next call of this
  // function.
  virtual std::span<const uint32_t> ForcedTokens() noexcept = 0;
  // Removes the last tokens. Returns false if there are fewer.
  virtual bool Rollback(size_t count) noexcept = 0;
  // Returns a number for the state before the last `back` tokens. States of other constraints have other numbers. Returns 0 if there are
  // fewer tokens.
  virtual uint64_t StateBefore(size_t back) const noexcept = 0;
};

}  // namespace onpolicy
