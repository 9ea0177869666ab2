// Any specification -> a constraint, and a random walk under it. At each step the mask must allow the tokens whose bytes one by one
// would be accepted, and no others; it leaves no dead end; forced tokens are allowed ones.
// Input: a byte for the kind, one for the options, two for the walk, then the text of the specification.
#include <cstdint>
#include <memory>
#include <string>

#include "base/utf8.h"
#include "grammar/mask/matcher.h"
#include "grammar/notations/compile.h"
#include "./require.h"

using namespace onpolicy;
using namespace onpolicy::grammar;

namespace {

constexpr uint64_t kMostWork = 3'000'000;
constexpr size_t kSteps = 24;
constexpr uint32_t kBytes = 256, kEnd = 256;

std::shared_ptr<const Vocabulary> MakeVocabulary() {
  std::vector<std::string> tokens;
  for (unsigned byte = 0; byte < kBytes; byte++) tokens.push_back(std::string(1, static_cast<char>(byte)));
  tokens.push_back("");
  for (const char* text : {"\"a", "a\"", "\"a\":", "\":", "\": ", "\",\"", ",\"", "{\"", "\"}", "},{", "[[", "]]", "]}", "}}", "1,", ",1", "10", "00", "-1", "e1",
                           ".5", "tr", "true", "false", "null", "ab", "aa", "abc", "bc", "\\u", "\\\"", "\\u00", "  ", "\n ", ": ", ", ", "\xC3\xA9", "\xE2\x82",
                           "<a>", "</a>", "x>", "\"\"", "[]", "{}", "\"b\":1", "b\":", "\"a\":1,\"b", "0}", "1]", "a,a", "\"a\",\"a\""})
    tokens.push_back(text);
  return std::make_shared<const Vocabulary>(tokens, std::vector<uint32_t>{kEnd}, std::vector<uint32_t>{kEnd}, nullptr);
}

bool TakesBytes(const Matcher& from, std::string_view bytes) {
  const std::unique_ptr<Matcher> matcher = from.Clone();
  for (char byte : bytes)
    if (!matcher->Accept(static_cast<uint8_t>(byte))) return false;
  return true;
}

void Walk(const std::shared_ptr<Constraint>& constraint, uint32_t seed) {
  Matcher matcher(constraint);
  const Vocabulary& vocabulary = constraint->vocabulary();
  std::vector<uint32_t> mask(matcher.mask_words());
  for (size_t step = 0; step < kSteps && !matcher.IsEnded(); step++) {
    matcher.FillMask(mask.data());
    const bool is_cut = matcher.IsMaskCut();
    std::vector<uint32_t> allowed;
    for (uint32_t token = 0; token < vocabulary.size(); token++) {
      const bool is_allowed = (mask[token >> 5] >> (token & 31)) & 1;
      if (is_allowed) allowed.push_back(token);
      if (token == kEnd) {
        Require(is_allowed == matcher.IsComplete(), "the end is allowed where the text is complete");
        continue;
      }
      const bool is_accepted = matcher.Clone()->Accept(token);
      // A mask without work left may lack tokens, and has none too many.
      if (is_cut && !is_allowed) continue;
      Require(is_allowed == is_accepted, "a token is in the mask where it is accepted: " + std::to_string(token));
      if (token >= kBytes) Require(is_allowed == TakesBytes(matcher, vocabulary.Bytes(token)), "a token is allowed where its bytes are: " + std::to_string(token));
    }
    Require(!allowed.empty(), "some token may follow");
    const auto forced = matcher.ForcedTokens();
    const std::unique_ptr<Matcher> ahead = matcher.Clone();
    for (uint32_t token : forced) Require(ahead->Accept(token), "forced tokens are accepted");
    seed = seed * 1664525 + 1013904223;
    Require(matcher.Accept(allowed[(seed >> 8) % allowed.size()]), "an allowed token is accepted");
    if (step % 5 == 4) {
      Require(matcher.Rollback(1), "a token can be taken back");
      matcher.Accept(allowed[0]);
    }
  }
}

// Returns the text as Node-API hands it over, which is always valid UTF-8: each byte of an invalid sequence becomes U+FFFD.
std::string AsUtf8(std::string_view bytes) {
  std::string text;
  for (size_t at = 0; at < bytes.size();) {
    size_t end = at;
    const uint32_t code_point = ReadCodePoint(bytes, &end);
    std::string written;
    AppendUtf8(code_point, &written);
    const bool is_surrogate = code_point >= 0xd800 && code_point < 0xe000;
    if (!is_surrogate && code_point < 0x110000 && written == bytes.substr(at, end - at)) {
      text += written;
      at = end;
    } else {
      AppendUtf8(0xfffd, &text);
      at++;
    }
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::shared_ptr<const Vocabulary> vocabulary = MakeVocabulary();
  if (size < 5) return 0;
  Spec spec;
  spec.kind = static_cast<SpecKind>(data[0] % 5);
  spec.schema.any_whitespace = data[1] & 1;
  spec.schema.any_order = data[1] & 2;
  spec.schema.disable_additional_properties = data[1] & 4;
  spec.schema.refuse_unknown = data[1] & 8;
  const std::string text = AsUtf8(std::string_view(reinterpret_cast<const char*>(data + 4), size - 4));
  if (spec.kind == SpecKind::kChoice) {
    for (size_t from = 0; from <= text.size();) {
      const size_t end = std::min(text.find('\n', from), text.size());
      spec.choices.push_back(text.substr(from, end - from));
      from = end + 1;
    }
  } else {
    spec.text = text;
  }
  const int32_t cancelled = 0;
  std::shared_ptr<Constraint> constraint;
  try {
    constraint = CompileConstraint(spec, vocabulary, &cancelled, kMostWork);
  } catch (const Failure& failure) {
    Require(failure.status().code == "INVALID_REQUEST" || failure.status().code == "UNSUPPORTED", "a refusal has a code: " + failure.status().message);
    return 0;
  }
  Walk(constraint, static_cast<uint32_t>(data[2]) << 8 | data[3]);
  return 0;
}
