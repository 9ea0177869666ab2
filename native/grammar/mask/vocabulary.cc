// Sorting, slicing and trie building for a vocabulary.
#include "grammar/mask/vocabulary.h"

#include <algorithm>

#include "grammar/mask/terminal-mask.h"

namespace onpolicy::grammar {

// Returns the first eight bytes as a number that sorts in the order of the bytes.
static uint64_t HeadOf(std::string_view text) {
  uint64_t head = 0;
  for (size_t i = 0; i < 8; i++) head = (head << 8) | (i < text.size() ? static_cast<uint8_t>(text[i]) : 0);
  return head;
}

static uint8_t AlikeByte(uint8_t byte) {
  for (size_t i = 0; i < std::size(kAlikeFirst); i++)
    if (byte >= kAlikeFirst[i] && byte <= kAlikeLast[i]) return kAlikeFirst[i];
  return byte;
}

// Returns the bytes of the code point at `at`, fewer if the text ends inside it; 0 if it is malformed.
static size_t CodePointLength(std::string_view text, size_t at) {
  const uint8_t lead = static_cast<uint8_t>(text[at]);
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const size_t length = std::min<size_t>(lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2, text.size() - at);
  for (size_t i = 1; i < length; i++)
    if ((static_cast<uint8_t>(text[at + i]) & 0xC0) != 0x80) return 0;
  if (length == 1) return 1;
  const uint8_t second = static_cast<uint8_t>(text[at + 1]);
  const bool is_broken = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
                         (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F);
  return is_broken ? 0 : length;
}

// Returns the class and number of code points of a text. kOther if it has a character that a JSON string must escape, or a malformed code
// point.
static SliceClass Classify(std::string_view text, unsigned* code_points) {
  bool lowercase = true, identifier = true, ascii = true;
  unsigned count = 0;
  for (size_t i = 0; i < text.size();) {
    const uint8_t byte = static_cast<uint8_t>(text[i]);
    count++;
    if (byte < 0x80) {
      if (byte < 0x20 || byte == '"' || byte == '\\' || byte == 0x7F) return SliceClass::kOther;
      const bool lower = byte >= 'a' && byte <= 'z';
      lowercase = lowercase && lower;
      identifier = identifier && (lower || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') || byte == '_');
      i++;
      continue;
    }
    ascii = lowercase = identifier = false;
    const size_t length = CodePointLength(text, i);
    if (length == 0) return SliceClass::kOther;
    i += length;
  }
  *code_points = count;
  return lowercase ? SliceClass::kLowercase
                   : identifier ? SliceClass::kIdentifier : ascii ? SliceClass::kPrintable : SliceClass::kUnicode;
}

Vocabulary::Vocabulary(std::vector<std::string> tokens, std::vector<uint32_t> eos_tokens,
                       std::vector<uint32_t> special_tokens, std::shared_ptr<const TextTokenizer> tokenizer)
    : eos_tokens_(std::move(eos_tokens)), quoted_tokens_(static_cast<uint32_t>(tokens.size())),
      splitter_(tokenizer ? std::make_unique<TextSplitter>(*this, std::move(tokenizer)) : nullptr), terminal_masks_(std::make_shared<TerminalMaskTable>()) {
  size_t total = 0;
  for (const std::string& token : tokens) total += token.size();
  bytes_.reserve(total);
  offsets_.reserve(tokens.size() + 1);
  for (const std::string& token : tokens) {
    offsets_.push_back(static_cast<uint32_t>(bytes_.size()));
    bytes_ += token;
  }
  offsets_.push_back(static_cast<uint32_t>(bytes_.size()));
  special_.assign(tokens.size(), false);
  std::sort(eos_tokens_.begin(), eos_tokens_.end());
  for (uint32_t token : special_tokens)
    if (token < size()) special_[token] = true;
  for (uint32_t token : eos_tokens_)
    if (token < size()) special_[token] = true;
  BuildSlices();
}

// Completes a slice; `open` are the nodes of its last token.
static void Close(const std::vector<uint32_t>& open, uint32_t mask_words, Slice* slice) {
  for (uint32_t node : open) slice->trie[node].end = static_cast<uint32_t>(slice->trie.size());
  slice->trie.shrink_to_fit();
  slice->tokens_before.push_back(static_cast<uint32_t>(slice->tokens.size()));
  slice->ListChildren();
  if (slice->kind == SliceClass::kOther) return;
  slice->mask.assign(mask_words, 0);
  for (uint32_t token : slice->tokens) slice->mask[token >> 5] |= 1u << (token & 31);
}

void Vocabulary::BuildSlices() {
  struct Entry {
    uint64_t head;
    uint32_t token;
  };
  std::vector<Entry> entries;
  entries.reserve(size());
  for (uint32_t token = 0; token < size(); token++) {
    const std::string_view text = Bytes(token);
    if (!special_[token] && !text.empty() && text.size() < 0xFFFF) entries.push_back({HeadOf(text), token});
  }
  std::sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
    if (a.head != b.head) return a.head < b.head;
    const int order = Bytes(a.token).compare(Bytes(b.token));
    return order != 0 ? order < 0 : a.token < b.token;
  });
  // Added behind those of the alphabets: short and long tokens of kOther.
  constexpr size_t kFirstOther = kSliceClasses * std::size(kSliceLengths);
  slices_.resize(kFirstOther + 2);
  slices_[kFirstOther + 1].is_long = true;
  for (size_t i = 0; i < kFirstOther; i++) {
    slices_[i].kind = static_cast<SliceClass>(i / std::size(kSliceLengths));
    slices_[i].max_length = kSliceLengths[i % std::size(kSliceLengths)];
    slices_[i].is_long = (i + 1) % std::size(kSliceLengths) == 0;
  }
  struct Builder {
    std::vector<uint32_t> path;  // open nodes from the root down
    std::string_view text;       // text of the last token
  };
  std::vector<Builder> builders(slices_.size());
  std::array<GrowingTrie, kAsciiClasses> alike;
  std::string alike_text;
  sorted_.reserve(entries.size());
  for (const Entry& entry : entries) {
    const std::string_view text = Bytes(entry.token);
    sorted_.push_back(entry.token);
    max_token_bytes_ = std::max(max_token_bytes_, text.size());
    if (text.find('"') != std::string_view::npos) {
      quote_tokens_.push_back(entry.token);
      quoted_tokens_.Add(entry.token, text);
    }
    unsigned code_points = 0;
    const SliceClass kind = Classify(text, &code_points);
    const bool is_long = text.size() > kShortBytes;
    size_t index = kFirstOther + is_long;
    if (kind < SliceClass::kOther) {
      size_t length = is_long ? std::size(kSliceLengths) - 1 : 0;
      while (code_points > kSliceLengths[length]) length++;
      index = static_cast<size_t>(kind) * std::size(kSliceLengths) + length;
    }
    if (static_cast<size_t>(kind) < kAsciiClasses && !is_long) {
      alike_text.clear();
      for (char c : text) alike_text.push_back(static_cast<char>(AlikeByte(static_cast<uint8_t>(c))));
      alike[static_cast<size_t>(kind)].AddToken(alike_text, entry.token);
    }
    Slice& slice = slices_[index];
    Builder& builder = builders[index];
    slice.first_bytes.Add(static_cast<uint8_t>(text[0]));
    size_t shared = 0;
    while (shared < text.size() && shared < builder.text.size() && text[shared] == builder.text[shared]) shared++;
    while (builder.path.size() > shared) {
      slice.trie[builder.path.back()].end = static_cast<uint32_t>(slice.trie.size());
      builder.path.pop_back();
    }
    for (size_t i = shared; i < text.size(); i++) {
      if (i == 0) slice.roots[static_cast<uint8_t>(text[0])] = static_cast<uint32_t>(slice.trie.size());
      builder.path.push_back(static_cast<uint32_t>(slice.trie.size()));
      TrieNode node;
      node.depth = static_cast<uint16_t>(i + 1);
      node.byte = static_cast<uint8_t>(text[i]);
      slice.trie.push_back(node);
      slice.tokens_before.push_back(static_cast<uint32_t>(slice.tokens.size()));
    }
    slice.tokens.push_back(entry.token);
    if (kind < SliceClass::kOther) slice.lengths.push_back(static_cast<uint8_t>(std::min(code_points, 255u)));
    builder.text = text;
  }
  quoted_tokens_.Finish();
  for (size_t kind = 0; kind < kAsciiClasses; kind++) alike_tokens_[kind] = alike[kind].Flat();
  for (size_t i = 0; i < slices_.size(); i++) Close(builders[i].path, mask_words(), &slices_[i]);
}

bool Vocabulary::IsEos(uint32_t token) const {
  return std::binary_search(eos_tokens_.begin(), eos_tokens_.end(), token);
}

int64_t Vocabulary::FindSpecial(std::string_view text) const {
  for (uint32_t token = 0; token < size(); token++)
    if (special_[token] && Bytes(token) == text) return token;
  return -1;
}

size_t Vocabulary::LowerBound(std::string_view text) const {
  return static_cast<size_t>(std::lower_bound(sorted_.begin(), sorted_.end(), text,
                                              [&](uint32_t token, std::string_view key) { return Bytes(token) < key; }) -
                             sorted_.begin());
}

int64_t Vocabulary::Find(std::string_view text) const {
  const size_t at = LowerBound(text);
  return at < sorted_.size() && Bytes(sorted_[at]) == text ? static_cast<int64_t>(sorted_[at]) : -1;
}

bool Vocabulary::HasLonger(std::string_view prefix) const {
  for (size_t at = LowerBound(prefix); at < sorted_.size(); at++) {
    const std::string_view text = Bytes(sorted_[at]);
    if (text.substr(0, prefix.size()) != prefix) return false;
    if (text.size() > prefix.size()) return true;
  }
  return false;
}

std::vector<uint32_t> Vocabulary::Tokenize(std::string_view text) const {
  std::vector<uint32_t> result;
  if (splitter_ && splitter_->Split(text, &result)) return result;
  for (size_t at = 0; at < text.size();) {
    int64_t best = -1;
    size_t length = std::min(text.size() - at, max_token_bytes_);
    for (; length > 0 && best < 0; length--) best = Find(text.substr(at, length));
    if (best < 0) break;
    result.push_back(static_cast<uint32_t>(best));
    at += length + 1;
  }
  return result;
}

const uint32_t* Vocabulary::SliceUnion(uint32_t slices) const {
  std::lock_guard<std::mutex> lock(union_mutex_);
  std::vector<uint32_t>& mask = unions_[slices];
  if (mask.empty()) {
    mask.assign(mask_words(), 0);
    for (size_t i = 0; i < slices_.size(); i++)
      if ((slices >> i) & 1)
        for (uint32_t word = 0; word < mask_words(); word++) mask[word] |= slices_[i].mask[word];
  }
  return mask.data();
}

const uint32_t* Vocabulary::UpToLength(unsigned code_points) const {
  std::lock_guard<std::mutex> lock(union_mutex_);
  std::vector<uint32_t>& mask = up_to_length_[code_points];
  if (mask.empty()) {
    mask.assign(mask_words(), 0);
    for (size_t at = 0; at < kSliceClasses * std::size(kSliceLengths); at++) {
      const Slice& slice = slices_[at];
      const size_t length = at % std::size(kSliceLengths);
      // Tokens of a slice are longer than those of the slice before.
      if (!slice.is_long && length > 0 && kSliceLengths[length - 1] >= code_points) continue;
      if (slice.max_length <= code_points) {
        for (uint32_t word = 0; word < mask_words(); word++) mask[word] |= slice.mask[word];
        continue;
      }
      for (size_t i = 0; i < slice.lengths.size(); i++)
        if (slice.lengths[i] <= code_points) mask[slice.tokens[i] >> 5] |= 1u << (slice.tokens[i] & 31);
    }
  }
  return mask.data();
}

size_t Vocabulary::memory_bytes() const {
  size_t total = bytes_.size() + offsets_.size() * 4 + sorted_.size() * 4 + quoted_tokens_.memory_bytes();
  for (const Slice& slice : slices_)
    total += slice.trie.size() * sizeof(TrieNode) + (slice.tokens.size() + slice.tokens_before.size()) * 4 + slice.mask.size() * 4 +
             slice.lengths.size() + slice.wide.size() * sizeof(WideNode) + slice.children.size() * 4;
  for (const TokenTrie& trie : alike_tokens_)
    total += trie.trie.size() * sizeof(TrieNode) + (trie.tokens.size() + trie.tokens_before.size()) * 4;
  return total;
}

}  // namespace onpolicy::grammar
