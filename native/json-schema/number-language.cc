// Two automata: order and divisibility. Their states are small records packed into 32 bits.
#include "json-schema/number-language.h"

#include "base/limits.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>

namespace onpolicy::grammar {

namespace {

// How far a number is parsed: -?(0|[1-9][0-9]*)(\.[0-9]+)?
enum NumberPart : uint32_t { kStart, kMinus, kZero, kInteger, kPoint, kFraction };

bool Advance(NumberPart phase, uint8_t byte, NumberPart* next) {
  const bool digit = byte >= '0' && byte <= '9';
  switch (phase) {
    case kStart:
    case kMinus:
      if (byte == '-' && phase == kStart) return *next = kMinus, true;
      if (byte == '0') return *next = kZero, true;
      return *next = kInteger, digit;
    case kZero:
      return *next = kPoint, byte == '.';
    case kInteger:
      if (byte == '.') return *next = kPoint, true;
      return *next = kInteger, digit;
    default:
      return *next = kFraction, digit;
  }
}

bool CanEnd(NumberPart phase) { return phase == kZero || phase == kInteger || phase == kFraction; }

// Compares the number read so far with a bound, sign by sign and digit by digit.
class OrderAutomaton : public Automaton {
 public:
  OrderAutomaton(const Decimal& bound, unsigned relations)
      : negative_(bound.negative), integer_(bound.IntegerDigits()), fraction_(bound.FractionDigits()),
        relations_(relations) {}

  uint32_t Next(uint32_t packed, uint8_t byte) override {
    State state = Unpack(packed);
    NumberPart next;
    if (!Advance(state.phase, byte, &next)) return kDead;
    if (byte == '-') {
      state.minus = 1;
    } else if (next == kZero || next == kInteger) {
      // Digits beyond the bound's length decide by length alone.
      if (state.order == 1 && state.count < integer_.size()) state.order = Order(byte, integer_[state.count]);
      if (byte != '0') state.nonzero = 1;
      if (state.count <= integer_.size()) state.count++;
    } else if (next == kPoint) {
      if (state.count != integer_.size()) state.order = state.count < integer_.size() ? 0 : 2;
      state.count = 0;
    } else if (next == kFraction) {
      const uint8_t digit = state.count < fraction_.size() ? static_cast<uint8_t>(fraction_[state.count]) : '0';
      if (state.order == 1) state.order = Order(byte, digit);
      if (byte != '0') state.nonzero = 1;
      if (state.count < fraction_.size()) state.count++;
    }
    state.phase = next;
    if (relations_ == kEqual && IsOff(state)) return kDead;
    return Pack(state);
  }

  bool Accepts(uint32_t packed) override {
    State state = Unpack(packed);
    if (!CanEnd(state.phase)) return false;
    unsigned order = state.order;
    if (state.phase != kFraction && state.count != integer_.size()) order = state.count < integer_.size() ? 0 : 2;
    const size_t read = state.phase == kFraction ? state.count : 0;
    if (order == 1 && read < fraction_.size() && fraction_.find_first_not_of('0', read) != std::string::npos) order = 0;
    const bool minus = state.minus && state.nonzero;  // -0 is 0
    const bool bound_is_zero = integer_ == "0" && fraction_.empty();
    int relation = static_cast<int>(order) - 1;  // of the absolute values
    if (minus != (negative_ && !bound_is_zero)) {
      relation = minus ? -1 : 1;
      if (!minus && !state.nonzero && bound_is_zero) relation = 0;
    } else if (minus) {
      relation = -relation;
    }
    return relations_ & (relation < 0 ? kLess : relation == 0 ? kEqual : kGreater);
  }
  std::string Content() const override {
    return std::string("order ") + (negative_ ? "-" : "") + integer_ + "." + fraction_ + " " + std::to_string(relations_);
  }

 private:
  struct State {
    NumberPart phase;
    uint32_t minus, nonzero, order, count;  // order: 0 below, 1 equal, 2 above
  };
  // Whether no number that begins so equals the bound.
  bool IsOff(const State& state) const {
    const bool is_zero = integer_ == "0" && fraction_.empty();
    const bool is_whole = state.phase == kZero || state.phase == kInteger;
    return state.order != 1 || (is_whole && state.count > integer_.size()) || (!is_zero && (state.minus == 1) != negative_);
  }
  static uint32_t Order(uint8_t digit, char bound) {
    return digit < static_cast<uint8_t>(bound) ? 0 : digit > static_cast<uint8_t>(bound) ? 2 : 1;
  }
  static uint32_t Pack(const State& state) {
    return state.phase | state.minus << 3 | state.nonzero << 4 | state.order << 5 | state.count << 7;
  }
  static State Unpack(uint32_t packed) {
    if (packed == 0) return {kStart, 0, 0, 1, 0};
    return {static_cast<NumberPart>(packed & 7), (packed >> 3) & 1, (packed >> 4) & 1, (packed >> 5) & 3, packed >> 7};
  }

  bool negative_;
  std::string integer_, fraction_;
  unsigned relations_;
};

// The same for numbers with an exponent and one digit before the point, which is not 0: as programs write them.
class ExponentOrderAutomaton : public Automaton {
 public:
  ExponentOrderAutomaton(const Decimal& bound, unsigned relations)
      : is_zero_(bound.IsZero()), negative_(bound.negative), digits_(bound.digits),
        exponent_(is_zero_ ? 0 : static_cast<int64_t>(bound.digits.size()) - 1 + bound.exponent),
        largest_(static_cast<uint32_t>(std::abs(exponent_)) + 1), relations_(relations) {}

  uint32_t Next(uint32_t packed, uint8_t byte) override {
    State state = Unpack(packed);
    const bool is_digit = byte >= '0' && byte <= '9', is_e = byte == 'e' || byte == 'E';
    switch (state.part) {
      case kBegin:
      case kSign:
        if (byte == '-' && state.part == kBegin) {
          state.minus = 1;
          return Pack(state, kSign);
        }
        if (byte == '0' || !is_digit) return kDead;
        Compare(&state, byte);
        return Pack(state, kDigit);
      case kDigit:
        return byte == '.' ? Pack(state, kDot) : is_e ? Pack(state, kMark) : kDead;
      case kDot:
      case kDigits:
        if (is_e && state.part == kDigits) return Pack(state, kMark);
        if (!is_digit) return kDead;
        Compare(&state, byte);
        return Pack(state, kDigits);
      case kMark:
        if (byte == '+' || byte == '-') {
          state.below = byte == '-';
          return Pack(state, kMarkSign);
        }
        [[fallthrough]];
      case kMarkSign:
      case kExponent:
        if (!is_digit) return kDead;
        state.exponent = std::min<uint32_t>(state.exponent * 10 + (byte - '0'), largest_);
        return Pack(state, kExponent);
    }
    return kDead;
  }

  bool Accepts(uint32_t packed) override {
    const State state = Unpack(packed);
    if (state.part != kExponent) return false;
    int relation = state.minus ? -1 : 1;
    if (!is_zero_ && (state.minus == 1) == negative_) {
      const int64_t exponent = state.below ? -static_cast<int64_t>(state.exponent) : static_cast<int64_t>(state.exponent);
      int size = static_cast<int>(state.order) - 1;  // of the absolute values
      if (size == 0 && digits_.find_first_not_of('0', state.count) != std::string::npos) size = -1;
      if (exponent != exponent_) size = exponent < exponent_ ? -1 : 1;
      relation *= size;
    }
    return relations_ & (relation < 0 ? kLess : relation == 0 ? kEqual : kGreater);
  }
  std::string Content() const override {
    return std::string("exponent order ") + (negative_ ? "-" : "") + digits_ + "e" + std::to_string(exponent_) + " " +
           std::to_string(relations_) + (is_zero_ ? " zero" : "");
  }

 private:
  enum Part : uint32_t { kBegin, kSign, kDigit, kDot, kDigits, kMark, kMarkSign, kExponent };
  struct State {
    Part part;
    uint32_t minus, order, below, count, exponent;  // order: 0 below, 1 equal, 2 above; count: digits compared
  };
  void Compare(State* state, uint8_t digit) const {
    const uint8_t other = state->count < digits_.size() ? static_cast<uint8_t>(digits_[state->count]) : '0';
    if (state->order == 1 && digit != other) state->order = digit < other ? 0 : 2;
    if (state->count < digits_.size()) state->count++;
  }
  static uint32_t Pack(const State& state, Part part) {
    return part | state.minus << 3 | state.order << 4 | state.below << 6 | state.count << 7 | state.exponent << 17;
  }
  static State Unpack(uint32_t packed) {
    if (packed == 0) return {kBegin, 0, 1, 0, 0, 0};
    return {static_cast<Part>(packed & 7), (packed >> 3) & 1, (packed >> 4) & 3, (packed >> 6) & 1, (packed >> 7) & 1023, packed >> 17};
  }

  bool is_zero_, negative_;
  std::string digits_;
  int64_t exponent_;  // of the bound, with one digit before the point
  uint32_t largest_;  // exponents from here on are all alike
  unsigned relations_;
};

// Bounds of more digits are compared without exponents only.
constexpr size_t kComparedDigits = 1000;
constexpr int64_t kComparedExponent = 8000;

// The remainder of the digits so far; fraction digits beyond the step's own must be zero.
class MultipleAutomaton : public Automaton {
 public:
  MultipleAutomaton(uint32_t step, uint32_t scale, bool inverted) : step_(step), scale_(scale), inverted_(inverted) {}

  uint32_t Next(uint32_t packed, uint8_t byte) override {
    const NumberPart phase = static_cast<NumberPart>(packed & 7);
    uint32_t count = (packed >> 3) & 15;
    uint32_t rest = packed >> 7;
    NumberPart next;
    if (!Advance(phase, byte, &next)) return kDead;
    if (byte >= '0' && byte <= '9') {
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
  // Minus zero is no integer that anyone means.
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
  if (relations == 0) return kNothing;
  const NodeId plain = pool_.Leaf(pool_.Own(std::make_unique<OrderAutomaton>(bound, relations)), 0);
  if (bound.digits.size() > kComparedDigits || std::abs(bound.exponent) > kComparedExponent) return plain;
  return pool_.Alternate({plain, pool_.Leaf(pool_.Own(std::make_unique<ExponentOrderAutomaton>(bound, relations)), 0)});
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
