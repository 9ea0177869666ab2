// Range arithmetic and the splitting of ranges into UTF-8 and \u escapes.
#include "grammar/regex/char-class.h"

#include <algorithm>

#include "base/utf8.h"
#include "grammar/regex/unicode-tables.h"

namespace onpolicy::grammar {

CodePoints Normalized(CodePoints ranges) {
  std::sort(ranges.begin(), ranges.end());
  CodePoints result;
  for (auto [low, high] : ranges) {
    if (low > high) continue;
    if (!result.empty() && low <= result.back().second + 1) {
      result.back().second = std::max(result.back().second, high);
    } else {
      result.push_back({low, high});
    }
  }
  return result;
}

CodePoints Inverted(const CodePoints& ranges) {
  CodePoints result;
  uint32_t next = 0;
  for (auto [low, high] : ranges) {
    if (low > next) result.push_back({next, low - 1});
    next = high + 1;
  }
  if (next <= kLastCodePoint) result.push_back({next, kLastCodePoint});
  return result;
}

CodePoints WithBothCases(const CodePoints& ranges) {
  CodePoints result = ranges;
  const auto has = [&](uint32_t code) {
    auto it = std::upper_bound(ranges.begin(), ranges.end(), std::make_pair(code, 0xFFFFFFFFu));
    return it != ranges.begin() && (it - 1)->second >= code;
  };
  for (const CaseRun& run : kCaseRuns)
    for (uint32_t i = 0; i < run.count; i++) {
      const uint32_t from = run.from + i * run.stride, to = run.to + i * run.stride;
      if (has(from)) result.push_back({to, to});
      if (has(to)) result.push_back({from, from});
    }
  return Normalized(std::move(result));
}

// Calls `visit` with each word of a list separated by spaces.
template <typename Visit>
static void ForEachWord(std::string_view words, Visit visit) {
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(' '));
    words.remove_prefix(std::min(words.size(), word.size() + 1));
    visit(word);
  }
}

static const UnicodeProperty* FindProperty(std::string_view wanted) {
  const UnicodeProperty* found = nullptr;
  for (const UnicodeProperty& property : kUnicodeProperties)
    ForEachWord(property.names, [&](std::string_view name) {
      if (name == wanted) found = &property;
    });
  return found;
}

// Reads a number in a property's ranges and moves `at` behind it.
static uint32_t ReadNumber(const char** at) {
  uint32_t number = 0, scale = 1;
  for (; **at >= 'a'; (*at)++, scale *= 26) number += scale * static_cast<uint32_t>(**at - 'a');
  return number + scale * static_cast<uint32_t>(*(*at)++ - 'A');
}

// Returns the ranges of a property, including those of the properties that it is made of.
static CodePoints PropertyRanges(const UnicodeProperty& property) {
  CodePoints ranges;
  uint32_t end = 0;
  for (const char* at = property.ranges; *at;) {
    const uint32_t low = end + ReadNumber(&at);
    end = low + ReadNumber(&at);
    ranges.push_back({low, end});
  }
  std::string_view parts = property.parts;
  const bool is_inverted = parts.starts_with('^');
  if (is_inverted) parts.remove_prefix(1);
  ForEachWord(parts, [&](std::string_view part) {
    const CodePoints more = PropertyRanges(*FindProperty(part));
    ranges.insert(ranges.end(), more.begin(), more.end());
  });
  ranges = Normalized(std::move(ranges));
  return is_inverted ? Inverted(ranges) : ranges;
}

std::optional<CodePoints> UnicodeClass(std::string_view name) {
  if (name == "Any") return CodePoints{{0, kLastCodePoint}};
  if (name == "ASCII") return CodePoints{{0, 0x7F}};
  std::string wanted(name);
  for (std::string_view prefix : {"General_Category=", "gc="})
    if (name.starts_with(prefix)) wanted = std::string(name.substr(prefix.size()));
  for (std::string_view prefix : {"sc=", "Script_Extensions=", "scx="})
    if (name.starts_with(prefix)) wanted = "Script=" + std::string(name.substr(prefix.size()));
  const UnicodeProperty* property = FindProperty(wanted);
  if (!property) property = FindProperty("Script=" + wanted);
  return property ? std::optional(PropertyRanges(*property)) : std::nullopt;
}

// Returns the expression of [low, high], given as digit strings of equal length, digit 0 first. `digit(position, from, to)` makes one
// position's node.
template <typename Digit>
static NodeId DigitRange(RegexPool& pool, const std::vector<uint32_t>& low, const std::vector<uint32_t>& high,
                         const std::vector<uint32_t>& least, const std::vector<uint32_t>& greatest, size_t at,
                         const Digit& digit) {
  if (at == low.size()) return kEpsilon;
  const auto tail_is = [&](const std::vector<uint32_t>& value, const std::vector<uint32_t>& limit) {
    return std::equal(value.begin() + static_cast<std::ptrdiff_t>(at) + 1, value.end(),
                      limit.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  };
  if (low[at] == high[at])
    return pool.Concat(digit(at, low[at], low[at]), DigitRange(pool, low, high, least, greatest, at + 1, digit));
  std::vector<NodeId> options;
  uint32_t from = low[at], to = high[at];
  if (!tail_is(low, least)) {
    options.push_back(
        pool.Concat(digit(at, from, from), DigitRange(pool, low, greatest, least, greatest, at + 1, digit)));
    from++;
  }
  if (!tail_is(high, greatest)) {
    options.push_back(pool.Concat(digit(at, to, to), DigitRange(pool, least, high, least, greatest, at + 1, digit)));
    to--;
  }
  if (from <= to)
    options.push_back(
        pool.Concat(digit(at, from, to), DigitRange(pool, least, greatest, least, greatest, at + 1, digit)));
  return pool.Alternate(std::move(options));
}

NodeId CharEncoder::Utf8(uint32_t low, uint32_t high) {
  std::vector<NodeId> options;
  const uint32_t ends[] = {0x7F, 0x7FF, 0xFFFF, kLastCodePoint};
  for (unsigned more = 0; more < 4; more++) {
    const uint32_t from = std::max(low, more == 0 ? 0 : ends[more - 1] + 1), to = std::min(high, ends[more]);
    if (from > to) continue;
    const auto split = [&](uint32_t code) {
      std::vector<uint32_t> bytes(more + 1);
      for (unsigned i = more; i > 0; i--, code >>= 6) bytes[i] = 0x80 | (code & 0x3F);
      bytes[0] = more == 0 ? code : (0xFF00 >> (more + 1) & 0xFF) | code;
      return bytes;
    };
    std::vector<uint32_t> least(more + 1, 0x80), greatest(more + 1, 0xBF);
    options.push_back(DigitRange(pool_, split(from), split(to), least, greatest, 0,
                                 [&](size_t, uint32_t a, uint32_t b) { return pool_.Bytes(ByteSet::Range(a, b)); }));
  }
  return pool_.Alternate(std::move(options));
}

NodeId CharEncoder::Hex(uint32_t low, uint32_t high) {
  const auto split = [](uint32_t code) {
    return std::vector<uint32_t>{code >> 12, (code >> 8) & 15, (code >> 4) & 15, code & 15};
  };
  const auto digit = [&](size_t, uint32_t from, uint32_t to) {
    ByteSet set;
    for (uint32_t value = from; value <= to; value++) {
      set.Add(value < 10 ? '0' + value : 'a' + value - 10);
      if (value >= 10) set.Add('A' + value - 10);
    }
    return pool_.Bytes(set);
  };
  return pool_.Concat(pool_.Literal("\\u"),
                      DigitRange(pool_, split(low), split(high), {0, 0, 0, 0}, {15, 15, 15, 15}, 0, digit));
}

void CharEncoder::AddJson(uint32_t low, uint32_t high, std::vector<NodeId>* options) {
  const auto each = [&](uint32_t from, uint32_t to, auto&& add) {
    from = std::max(from, low);
    to = std::min(to, high);
    if (from <= to) add(from, to);
  };
  const auto raw = [&](uint32_t from, uint32_t to) { options->push_back(Utf8(from, to)); };
  const auto hex = [&](uint32_t from, uint32_t to) { options->push_back(Hex(from, to)); };
  each(0, 0x1F, hex);
  each(0x20, 0x21, raw);
  each(0x23, 0x5B, raw);
  each(0x5D, 0xD7FF, raw);
  each(0xE000, kLastCodePoint, raw);
  each(0x7F, 0xD7FF, hex);
  each(0xE000, 0xFFFF, hex);
  if (form_ == TextForm::kJsonAnyway) each(0x20, 0x7E, hex);
  each(0x10000, kLastCodePoint, [&](uint32_t from, uint32_t to) {
    const auto split = [](uint32_t code) {
      return std::vector<uint32_t>{0xD800 + ((code - 0x10000) >> 10), 0xDC00 + ((code - 0x10000) & 0x3FF)};
    };
    options->push_back(DigitRange(pool_, split(from), split(to), {0xD800, 0xDC00}, {0xDBFF, 0xDFFF}, 0,
                                  [&](size_t, uint32_t a, uint32_t b) { return Hex(a, b); }));
  });
  const std::pair<uint32_t, const char*> shorts[] = {{'"', "\\\""}, {'\\', "\\\\"}, {'/', "\\/"}, {'\b', "\\b"},
                                                     {'\f', "\\f"}, {'\n', "\\n"},  {'\r', "\\r"}, {'\t', "\\t"}};
  for (const auto& [code, escape] : shorts)
    if (code >= low && code <= high) options->push_back(pool_.Literal(escape));
}

NodeId CharEncoder::Class(const CodePoints& ranges) {
  const bool is_any = form_ != TextForm::kPlain && ranges == CodePoints{{0, kLastCodePoint}}, is_anyway = form_ == TextForm::kJsonAnyway;
  if (is_any && pool_.any_character(is_anyway) != kNothing) return pool_.any_character(is_anyway);
  auto it = memo_.find(ranges);
  if (it != memo_.end()) return it->second;
  std::vector<NodeId> options;
  for (auto [low, high] : ranges) {
    if (form_ != TextForm::kPlain) {
      AddJson(low, high, &options);
      continue;
    }
    if (low < 0xD800) options.push_back(Utf8(low, std::min(high, 0xD7FFu)));
    if (high > 0xDFFF) options.push_back(Utf8(std::max(low, 0xE000u), high));
  }
  const NodeId node = pool_.Alternate(std::move(options));
  memo_.emplace(ranges, node);
  if (form_ != TextForm::kPlain && node != kNothing) pool_.NoteCharacter(node);
  if (is_any) pool_.NoteAnyCharacter(node, is_anyway);
  return node;
}

NodeId CharEncoder::Text(std::string_view utf8) {
  std::vector<NodeId> parts;
  for (size_t at = 0; at < utf8.size();) {
    const uint32_t code = ReadCodePoint(utf8, &at);
    // The common case, without a table: an ASCII character that needs no escape.
    if (code >= 0x20 && code < 0x7F && (form_ == TextForm::kPlain || (code != '"' && code != '\\' && code != '/'))) {
      parts.push_back(pool_.Bytes(ByteSet::Range(code, code)));
    } else {
      parts.push_back(Class({{code, code}}));
    }
  }
  return pool_.Concat(parts);
}

}  // namespace onpolicy::grammar
