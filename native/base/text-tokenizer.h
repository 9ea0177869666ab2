// A text -> the tokens that a model's tokenizer makes of it, as the grammar addon sees the tokenizer of the main addon.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace onpolicy {

// Must change with every change of this file. A handle of another version is refused.
constexpr uint64_t kTextTokenizerVersion = 1;

// Any thread may call it. Its memory belongs to the library that made it, and no call throws.
class TextTokenizer {
 public:
  // Returned if there are no tokens: the model was closed, or its vocabulary cannot spell the text.
  static constexpr size_t kFailed = SIZE_MAX;

  virtual ~TextTokenizer() = default;
  // Writes the first `room` tokens of a text to `ids` and returns the number of all its tokens. The text of a control token is read as
  // plain text, and no tokens are added at the ends.
  virtual size_t Tokenize(std::string_view text, uint32_t* ids, size_t room) const noexcept = 0;
};

}  // namespace onpolicy
