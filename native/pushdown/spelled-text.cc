// One text as it may be spelled inside of a JSON string -> an automaton that is made at once, however long the text is.
#include "base/utf8.h"
#include "pushdown/text-tools.h"

namespace onpolicy::grammar {
namespace {

// A state is the number of whole characters times kStages, plus how far the next one has come.
constexpr uint32_t kStages = 16;
constexpr uint32_t kEscape = 4;      // after a backslash; 1 to 3: bytes of a character as it is
constexpr uint32_t kHex = 5;         // after \u; the next three: after its digits
constexpr uint32_t kLowEscape = 9;   // between the halves of a surrogate pair; the next: after its second backslash
constexpr uint32_t kLowHex = 11;     // after the second \u, and its digits

bool IsHexDigit(uint8_t byte, uint32_t value) {
  const uint32_t lower = byte >= 'A' && byte <= 'F' ? byte + 32u : byte;
  return lower == (value < 10 ? '0' + value : 'a' + value - 10);
}

class SpelledText : public Automaton {
 public:
  explicit SpelledText(std::string text) : text_(std::move(text)) {
    for (size_t at = 0; at < text_.size();) {
      starts_.push_back(static_cast<uint32_t>(at));
      codes_.push_back(ReadCodePoint(text_, &at));
    }
    starts_.push_back(static_cast<uint32_t>(text_.size()));
  }

  uint32_t Next(uint32_t state, uint8_t byte) override {
    const uint32_t at = state / kStages, stage = state % kStages, after = (at + 1) * kStages;
    if (at == codes_.size()) return kDead;
    const uint32_t code = codes_[at];
    if (stage < kEscape) {
      if (stage == 0 && byte == '\\') return state + kEscape;
      if (static_cast<uint8_t>(text_[starts_[at] + stage]) != byte) return kDead;
      return starts_[at] + stage + 1 == starts_[at + 1] ? after : state + 1;
    }
    if (stage == kEscape) return byte == 'u' ? state + 1 : byte != 0 && byte == ShortEscape(code) ? after : kDead;
    if (stage == kLowEscape) return byte == '\\' ? state + 1 : kDead;
    if (stage == kLowEscape + 1) return byte == 'u' ? state + 1 : kDead;
    const bool is_pair = code >= 0x10000, is_low = stage >= kLowHex;
    const uint32_t unit = !is_pair ? code : is_low ? 0xDC00 + ((code - 0x10000) & 0x3FF) : 0xD800 + ((code - 0x10000) >> 10);
    const uint32_t digit = stage - (is_low ? kLowHex : kHex);
    if (!IsHexDigit(byte, (unit >> (4 * (3 - digit))) & 15)) return kDead;
    if (digit < 3) return state + 1;
    return is_pair && !is_low ? at * kStages + kLowEscape : after;
  }
  bool Accepts(uint32_t state) override { return state == codes_.size() * kStages; }
  std::string Content() const override { return "spelled " + text_; }

 private:
  static uint8_t ShortEscape(uint32_t code) {
    switch (code) {
      case '\b':
        return 'b';
      case '\f':
        return 'f';
      case '\n':
        return 'n';
      case '\r':
        return 'r';
      case '\t':
        return 't';
      default:
        return code == '"' || code == '\\' || code == '/' ? static_cast<uint8_t>(code) : 0;
    }
  }

  std::string text_;
  std::vector<uint32_t> codes_, starts_;  // by character; `starts_` ends with the size of the text
};

}  // namespace

NodeId SpelledAnyway(RegexPool& pool, std::string text) {
  return pool.Leaf(pool.Own(std::make_unique<SpelledText>(std::move(text))), 0);
}

}  // namespace onpolicy::grammar
