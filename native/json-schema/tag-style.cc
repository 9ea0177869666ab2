// The table of styles, and texts without JSON's escapes.
#include "json-schema/tag-style.h"

#include <memory>

namespace onpolicy::grammar {

static constexpr TagStyle kStyles[] = {
    {"qwen_xml", "<parameter=", "", ">", TagStyle::kNoAttribute, "", false, "</parameter>", true, false},
    {"minimax_xml", "<parameter name=\"", "", "\">", TagStyle::kNoAttribute, "", false, "</parameter>", false, false},
    {"deepseek_xml", "<｜DSML｜parameter name=\"", "", "\" string=\"", TagStyle::kStringFlag, "\">", false,
     "</｜DSML｜parameter>", false, false},
    {"glm_xml", "<arg_key>", "", "</arg_key>", TagStyle::kNoAttribute, "<arg_value>", true, "</arg_value>", false, false},
    {"cohere_xml", "<cofl:value name=\"", "<cofl:value type=\"", "\" type=\"", TagStyle::kKind, "\">", false,
     "</cofl:value>", false, false},
    {"kimi_k3_xml", "<|open|>argument key=\"", "", "\" type=\"", TagStyle::kTypeName, "\"<|sep|>", false,
     "<|close|>argument<|sep|>", false, true},
};

const TagStyle* FindTagStyle(std::string_view name) {
  for (const TagStyle& style : kStyles)
    if (style.name == name) return &style;
  return nullptr;
}

bool WriteTagKey(const TagStyle& style, std::string_view key, std::string* written) {
  written->clear();
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

NodeId PlainTagKeys(RegexPool& pool) {
  ByteSet plain = ByteSet::Range(0x21, 0xFF);
  for (char c : {'"', '&', '<', '>', '\x7F'}) plain = plain & ~ByteSet::Range(static_cast<uint8_t>(c), static_cast<uint8_t>(c));
  return pool.Repeat(pool.Bytes(plain), 1, kUnlimited);
}

namespace {

// A state is that of the JSON text: each byte is put in as JSON spells it.
class PlainAutomaton : public Automaton {
 public:
  explicit PlainAutomaton(RegexPool& pool) : pool_(pool) {}

  uint32_t Next(uint32_t state, uint8_t byte) override {
    if (byte == '"' || byte == '\\') return Follow(state, {'\\', static_cast<char>(byte)});
    if (byte >= 0x20) return Follow(state, {static_cast<char>(byte)});
    const char* digits = "0123456789abcdef";
    return Follow(state, {'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]});
  }
  bool Accepts(uint32_t state) override { return pool_.IsNullable(state); }

 private:
  uint32_t Follow(NodeId state, std::string_view bytes) {
    for (size_t i = 0; i < bytes.size() && state != kNothing; i++) state = pool_.Next(state, static_cast<uint8_t>(bytes[i]));
    return state == kNothing ? kDead : state;
  }
  uint32_t Follow(NodeId state, std::initializer_list<char> bytes) {
    return Follow(state, std::string_view(bytes.begin(), bytes.size()));
  }

  RegexPool& pool_;
};

}  // namespace

Automaton* MakePlainAutomaton(RegexPool& pool) { return pool.Own(std::make_unique<PlainAutomaton>(pool)); }

}  // namespace onpolicy::grammar
