// One to four bytes for a code point.
#include "base/utf8.h"

namespace onpolicy::grammar {

uint32_t ReadCodePoint(std::string_view text, size_t* at) {
  const uint8_t lead = static_cast<uint8_t>(text[(*at)++]);
  const unsigned more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
  if (more == 0 || *at + more > text.size()) return lead;
  uint32_t code = lead & (0x3F >> more);
  for (unsigned i = 0; i < more; i++) code = (code << 6) | (static_cast<uint8_t>(text[(*at)++]) & 0x3F);
  return code;
}

void AppendUtf8(uint32_t code, std::string* out) {
  if (code < 0x80) {
    out->push_back(static_cast<char>(code));
    return;
  }
  const unsigned more = code >= 0x10000 ? 3 : code >= 0x800 ? 2 : 1;
  out->push_back(static_cast<char>((0xFF00 >> (more + 1) & 0xFF) | (code >> (6 * more))));
  for (unsigned i = more; i-- > 0;) out->push_back(static_cast<char>(0x80 | ((code >> (6 * i)) & 0x3F)));
}

}  // namespace onpolicy::grammar
