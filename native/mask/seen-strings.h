// The strings of a text that grows, as far as tokens hold them: each part of the text is read once.
#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

#include "mask/quoted-tokens.h"

namespace onpolicy::grammar {

class SeenStrings {
 public:
  // Reads what `text` has gained since the last call, or since it was cut.
  void Read(std::string_view text, const QuotedTokens& quoted);
  // The text has lost what came after so many bytes.
  void Cut(size_t size);
  // Whether every string has one spelling, which is the plain one where there is such.
  bool is_plain() const { return escape_end_ == 0; }
  // Of strings that some token of kind kStrings holds, in the order of their first ends.
  const std::vector<size_t>& hashes() const { return hashes_; }

 private:
  size_t read_ = 0;            // bytes
  size_t escape_end_ = 0;      // of the first escape that could be spelled plainly; 0: none
  std::vector<size_t> hashes_;
  std::vector<size_t> ends_;   // of the first place of each
};

}  // namespace onpolicy::grammar
