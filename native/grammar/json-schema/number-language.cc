// Two automata: order and divisibility. Their states are small records packed into 32 bits.
#include "grammar/json-schema/number-language.h"

#include "base/limits.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

namespace onpolicy::grammar {

namespace {

// Position in a number: -?(0|[1-9][0-9]*)(\.[0-9]+)?, and an optional exponent.
enum NumberPart : uint32_t { kStart, kMinus, kZero, kInteger, kPoint, kFraction, kMark, kMarkSign, kExponent, kParts };

bool IsDigit(uint8_t byte) { return byte >= '0' && byte <= '9'; }

// Advances up to the exponent.
bool Advance(NumberPart part, uint8_t byte, NumberPart* next) {
  switch (part) {
    case kStart:
    case kMinus:
      if (byte == '-' && part == kStart) return *next = kMinus, true;
      if (byte == '0') return *next = kZero, true;
      return *next = kInteger, IsDigit(byte);
    case kZero:
      return *next = kPoint, byte == '.';
    case kInteger:
      if (byte == '.') return *next = kPoint, true;
      return *next = kInteger, IsDigit(byte);
    default:
      return *next = kFraction, IsDigit(byte);
  }
}

bool CanEnd(NumberPart part) { return part == kZero || part == kInteger || part == kFraction || part == kExponent; }

// Compares the number read so far with a bound by sign, power of ten of the first nonzero digit, and the digits from there on. An exponent
// may follow only one nonzero digit before the point, as programs write it.
class OrderAutomaton : public Automaton {
 public:
  OrderAutomaton(const Decimal& bound, unsigned relations)
      : negative_(bound.negative), digits_(bound.digits),
        power_(bound.IsZero() ? 0 : static_cast<int64_t>(bound.digits.size()) - 1 + bound.exponent),
        largest_(static_cast<uint32_t>(std::abs(power_)) + 1), relations_(relations) {}

  uint32_t Next(uint32_t packed, uint8_t byte) override {
    State state = Unpack(packed);
    if (state.part >= kMark) {
      const bool is_sign = state.part == kMark && (byte == '+' || byte == '-');
      if (!is_sign && !IsDigit(byte)) return kDead;
      if (is_sign) state.below = byte == '-';
      if (!is_sign) state.power = std::min<uint32_t>(state.power * 10 + (byte - '0'), largest_);
      state.part = is_sign ? kMarkSign : kExponent;
    } else if (byte == 'e' || byte == 'E') {
      const bool has_one_digit = state.power == 0 && (state.part == kInteger || state.part == kFraction);
      if (!has_one_digit) return kDead;
      state.part = kMark;
    } else {
      NumberPart next;
      if (!Advance(state.part, byte, &next)) return kDead;
      if (byte == '-') state.minus = 1;
      if (IsDigit(byte)) Read(byte, next, &state);
      state.part = next;
    }
    const bool is_off = state.order != kSame || (!digits_.empty() && (state.minus == 1) != negative_);
    return relations_ == kEqual && is_off ? kDead : Pack(state);
  }

  bool Accepts(uint32_t packed) override {
    const State state = Unpack(packed);
    const bool is_zero = digits_.empty();
    if (!CanEnd(state.part)) return false;
    int relation = state.minus ? -1 : 1;
    if (!state.HasBegun()) {  // -0 is 0
      relation = is_zero ? 0 : negative_ ? 1 : -1;
    } else if (!is_zero && (state.minus == 1) == negative_) {
      const int64_t power = state.below ? -static_cast<int64_t>(state.power) : static_cast<int64_t>(state.power);
      int size = state.order == kSame ? (state.count < digits_.size() ? -1 : 0) : state.order == kLower ? -1 : 1;
      if (power != power_) size = power < power_ ? -1 : 1;
      relation *= size;  // now the relation of the absolute values
    }
    return relations_ & (relation < 0 ? kLess : relation == 0 ? kEqual : kGreater);
  }
  std::string Content() const override {
    return std::string("order ") + (negative_ ? "-" : "") + digits_ + "e" + std::to_string(power_) + " " + std::to_string(relations_);
  }

 private:
  enum Order : uint32_t { kSame, kLower, kHigher };  // relation of the digits so far
  struct State {
    NumberPart part = kStart;
    uint32_t minus = 0, order = kSame;
    uint32_t below = 0, power = 0;  // sign and amount of the power of ten
    uint32_t count = 0;             // number of the bound's digits that are compared, while all are equal
    bool HasBegun() const { return order != kSame || count > 0; }
  };
  void Read(uint8_t digit, NumberPart next, State* state) const {
    const bool has_begun = state->HasBegun(), is_below = next == kFraction && !has_begun;
    if (is_below) state->below = 1;
    if (is_below || (next == kInteger && state->part == kInteger)) state->power = std::min(state->power + 1, largest_);
    if ((!has_begun && digit == '0') || state->order != kSame) return;
    const uint8_t other = state->count < digits_.size() ? static_cast<uint8_t>(digits_[state->count]) : '0';
    if (digit != other) {
      state->order = digit < other ? kLower : kHigher;
      state->count = 0;
    } else if (state->count < digits_.size()) {
      state->count++;
    }
  }
  // The state at the start is 0.
  uint32_t Pack(const State& state) const {
    return ((((state.count * (largest_ + 1) + state.power) * 2 + state.below) * 3 + state.order) * 2 + state.minus) * kParts + state.part;
  }
  State Unpack(uint32_t packed) const {
    const auto take = [&](uint32_t size) { return std::exchange(packed, packed / size) % size; };
    State state;
    state.part = static_cast<NumberPart>(take(kParts));
    state.minus = take(2);
    state.order = take(3);
    state.below = take(2);
    state.power = take(largest_ + 1);
    state.count = packed;
    return state;
  }

  bool negative_;
  std::string digits_;
  int64_t power_;     // power of ten of the bound's first digit
  uint32_t largest_;  // powers from here on are equivalent
  unsigned relations_;
};

// Computes the remainder of the digits read so far. Fraction digits beyond those of the step must be zero.
class MultipleAutomaton : public Automaton {
 public:
  MultipleAutomaton(uint32_t step, uint32_t scale, bool inverted) : step_(step), scale_(scale), inverted_(inverted) {}

  uint32_t Next(uint32_t packed, uint8_t byte) override {
    const NumberPart part = static_cast<NumberPart>(packed & 7);
    uint32_t count = (packed >> 3) & 15;
    uint32_t rest = packed >> 7;
    NumberPart next;
    if (!Advance(part, byte, &next)) return kDead;
    if (IsDigit(byte)) {
      if (next == kFraction && count == scale_) {
        if (byte != '0') {
          if (!inverted_) return kDead;
          rest = step_;  // never a multiple again
        }
      } else if (rest != step_) {
        rest = (rest * 10 + (byte - '0')) % step_;
        if (next == kFraction) count++;
      }
    }
    return next | count << 3 | rest << 7;
  }

  bool Accepts(uint32_t packed) override {
    if (!CanEnd(static_cast<NumberPart>(packed & 7))) return false;
    uint64_t rest = packed >> 7;
    if (rest == step_) return inverted_;
    for (uint32_t count = (packed >> 3) & 15; count < scale_; count++) rest = rest * 10 % step_;
    return (rest == 0) != inverted_;
  }
  std::string Content() const override {
    return "multiple " + std::to_string(step_) + " " + std::to_string(scale_) + (inverted_ ? " not" : "");
  }

 private:
  uint32_t step_, scale_;
  bool inverted_;
};

}  // namespace

NumberLanguage::NumberLanguage(RegexPool& pool) : pool_(pool) {
  const NodeId digit = pool.Bytes(ByteSet::Range('0', '9'));
  const NodeId digits = pool.Repeat(digit, 1, kUnlimited);
  const NodeId whole =
      pool.Alternate({pool.Literal("0"),
                      pool.Concat(pool.Bytes(ByteSet::Range('1', '9')), pool.Repeat(digit, 0, kUnlimited))});
  const NodeId signed_whole = pool.Concat(pool.Optional(pool.Literal("-")), whole);
  // Does not allow minus zero as an integer.
  integer_ = pool.Alternate({pool.Literal("0"), pool.Concat({pool.Optional(pool.Literal("-")),
                                                             pool.Bytes(ByteSet::Range('1', '9')),
                                                             pool.Repeat(digit, 0, kUnlimited)})});
  plain_ = pool.Concat(signed_whole, pool.Optional(pool.Concat(pool.Literal("."), digits)));
  any_ = pool.Concat(plain_, pool.Optional(pool.Concat({pool.Bytes(ByteSet::Of("eE")), pool.Optional(pool.Bytes(ByteSet::Of("+-"))), digits})));
  const NodeId zeros = pool.Repeat(pool.Literal("0"), 0, kUnlimited);
  not_integer_ = pool.Concat({signed_whole, pool.Literal("."), zeros, pool.Bytes(ByteSet::Range('1', '9')),
                              pool.Repeat(digit, 0, kUnlimited)});
}

NodeId NumberLanguage::Ordered(const Decimal& bound, unsigned relations) {
  return relations == 0 ? kNothing : pool_.Leaf(pool_.Own(std::make_unique<OrderAutomaton>(bound, relations)), 0);
}

bool NumberLanguage::Multiple(const Decimal& step, bool inverted, NodeId* result) {
  if (step.exponent < -12 || step.digits.size() > 7 || step.exponent > 6) return false;
  uint64_t value = std::stoull(step.digits);
  for (int64_t i = 0; i < step.exponent; i++) value *= 10;
  if (value > limits::kRemainders) return false;
  const uint32_t scale = step.exponent < 0 ? static_cast<uint32_t>(-step.exponent) : 0;
  *result = pool_.Leaf(
      pool_.Own(std::make_unique<MultipleAutomaton>(static_cast<uint32_t>(value), scale, inverted)), 0);
  return true;
}

NodeId NumberLanguage::Exactly(const Decimal& value) {
  const std::string sign = value.negative ? "-" : "";
  std::string text = sign + value.IntegerDigits();
  if (value.IsInteger()) return pool_.Alternate({pool_.Literal(text), pool_.Literal(text + ".0")});
  return pool_.Literal(text + "." + value.FractionDigits());
}

}  // namespace onpolicy::grammar
