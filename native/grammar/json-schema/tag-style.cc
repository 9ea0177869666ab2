// The table of styles, and texts without JSON's escapes.
#include "grammar/json-schema/tag-style.h"

#include <algorithm>
#include <memory>

#include "grammar/json/value.h"

namespace onpolicy::grammar {

static constexpr TagStyle kStyles[] = {
    {"qwen_xml", "<parameter=", "", ">", TagStyle::kNoAttribute, "", false, "</parameter>", true, false, ""},
    {"seed_xml", "<parameter=", "", ">", TagStyle::kNoAttribute, "", false, "</parameter>", false, false, ""},
    {"minimax_xml", "<parameter name=\"", "", "\">", TagStyle::kNoAttribute, "", false, "</parameter>", false, false, ""},
    {"atem_xml", "<atem:parameter name=\"", "", "\">", TagStyle::kNoAttribute, "", false, "</atem:parameter>", false, false, ""},
    {"minicpm_xml", "<param name=\"", "", "\">", TagStyle::kNoAttribute, "", false, "</param>", false, false, ""},
    {"deepseek_xml", "<｜DSML｜parameter name=\"", "", "\" string=\"", TagStyle::kStringFlag, "\">", false,
     "</｜DSML｜parameter>", false, false, ""},
    {"glm_xml", "<arg_key>", "", "</arg_key>", TagStyle::kNoAttribute, "<arg_value>", true, "</arg_value>", false, false, ""},
    {"hunyuan_xml", "<arg_key:opensource>", "", "</arg_key:opensource>", TagStyle::kNoAttribute, "<arg_value:opensource>", true,
     "</arg_value:opensource>", false, false, ""},
    {"cohere_xml", "<cofl:value name=\"", "<cofl:value type=\"", "\" type=\"", TagStyle::kKind, "\">", false,
     "</cofl:value>", false, false, ""},
    {"kimi_k3_xml", "<|open|>argument key=\"", "", "\" type=\"", TagStyle::kTypeName, "\"<|sep|>", false,
     "<|close|>argument<|sep|>", false, true, ""},
    {"python", "", "", "=", TagStyle::kJson, "", false, "", false, false, ", "},
    {"gemma", "", "", ":", TagStyle::kQuoted, "", false, "<|\"|>", false, false, ","},
};

const TagStyle* FindTagStyle(std::string_view name) {
  for (const TagStyle& style : kStyles)
    if (style.name == name) return &style;
  return nullptr;
}

static bool IsWord(std::string_view key) {
  const auto is_letter = [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !key.empty() && is_letter(key[0]) &&
         std::all_of(key.begin(), key.end(), [&](char c) { return is_letter(c) || c == '-' || c == '.' || (c >= '0' && c <= '9'); });
}

bool WriteTagKey(const TagStyle& style, std::string_view key, std::string* written) {
  written->clear();
  if (!style.separator.empty()) *written = key;
  if (!style.separator.empty()) return IsWord(key);
  for (char c : key) {
    if (style.escapes_keys && c == '&') {
      *written += "&amp;";
    } else if (style.escapes_keys && c == '"') {
      *written += "&quot;";
    } else {
      written->push_back(c);
    }
  }
  return !key.empty() && (*written + std::string(style.key_end)).find(style.key_end) == written->size();
}

NodeId PlainTagKeys(const TagStyle& style, RegexPool& pool) {
  if (!style.separator.empty()) {
    const ByteSet letters = ByteSet::Range('a', 'z') | ByteSet::Range('A', 'Z') | ByteSet::Range('_', '_');
    const ByteSet others = letters | ByteSet::Range('0', '9') | ByteSet::Range('-', '.');
    return pool.Concat(pool.Bytes(letters), pool.Repeat(pool.Bytes(others), 0, kUnlimited));
  }
  return pool.Repeat(pool.Bytes(ByteSet::Range(0x21, 0xFF) & ~ByteSet::Of("\"&<>\x7F")), 1, kUnlimited);
}

namespace {

// A state is one of the JSON text's automaton: each byte is fed to it in its JSON spelling.
class PlainAutomaton : public Automaton {
 public:
  explicit PlainAutomaton(RegexPool& pool) : pool_(pool) {}

  uint32_t Next(uint32_t state, uint8_t byte) override {
    for (char spelled : JsonSpelling(byte)) {
      if (state == kNothing) return kDead;
      state = pool_.Next(state, static_cast<uint8_t>(spelled));
    }
    return state == kNothing ? kDead : state;
  }
  bool Accepts(uint32_t state) override { return pool_.IsNullable(state); }

 private:
  RegexPool& pool_;
};

}  // namespace

Automaton* MakePlainAutomaton(RegexPool& pool) { return pool.Own(std::make_unique<PlainAutomaton>(pool)); }

}  // namespace onpolicy::grammar
