// Calls the tokenizer on the text with several continuations; the tokens that all results share are certain.
#include "grammar/mask/text-splitter.h"

#include <algorithm>

#include "grammar/mask/vocabulary.h"

namespace onpolicy::grammar {

// Number of the answer's tokens that the tokenizer gets before the forced text, at most and at least.
static constexpr size_t kContextTokens = 4;
// Number of bytes at the end of the forced text in which tokens may still be joined with later ones.
static constexpr size_t kOpenBytes = 64;
// Maximum bytes of a token that ends inside a character.
static constexpr size_t kBrokenBytes = 16;
// Number of cached answers; when there are more, all are dropped.
static constexpr size_t kKnownSplits = 4096;
// One character of each kind that tokenizers distinguish in their look-ahead.
static constexpr std::string_view kProbes[] = {"a", "A", "0", " ", "\n", "\"", "."};

static bool IsInsideCharacter(std::string_view text, size_t at) {
  return at < text.size() && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80;
}

// Returns a text up to its last whole character.
static std::string_view WholeCharacters(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); back++) {
    const auto byte = static_cast<uint8_t>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > back ? text.substr(0, text.size() - back) : text;
  }
  return text;
}

void TextSplitter::FindLead() {
  for (std::string_view lead : {"", "\n", "\t", "."}) {
    lead_ = lead;
    lead_tokens_.clear();
    std::vector<uint32_t> tokens(8);
    if (!lead.empty()) {
      const size_t count = tokenizer_->Tokenize(lead, tokens.data(), tokens.size());
      if (count > tokens.size()) continue;
      tokens.resize(count);
      lead_tokens_ = tokens;
    }
    if (SplitBehindLead("x", &tokens)) return;
  }
}

bool TextSplitter::SplitBehindLead(std::string_view text, std::vector<uint32_t>* tokens) {
  const std::string whole = lead_ + std::string(text);
  std::vector<uint32_t> ids(whole.size() + lead_tokens_.size() + 2);
  const size_t count = tokenizer_->Tokenize(whole, ids.data(), ids.size());
  if (count > ids.size() || count < lead_tokens_.size()) return false;
  if (!std::equal(lead_tokens_.begin(), lead_tokens_.end(), ids.begin())) return false;
  const auto first = ids.begin() + static_cast<std::ptrdiff_t>(lead_tokens_.size()), last = ids.begin() + static_cast<std::ptrdiff_t>(count);
  std::string_view rest = text;
  for (auto id = first; id != last; id++) {
    const std::string_view bytes = *id < vocabulary_.size() ? vocabulary_.Bytes(*id) : std::string_view();
    if (bytes.empty() || vocabulary_.IsSpecial(*id) || !rest.starts_with(bytes)) return false;
    rest.remove_prefix(bytes.size());
  }
  if (!rest.empty()) return false;
  tokens->assign(first, last);
  return true;
}

bool TextSplitter::Split(std::string_view text, std::vector<uint32_t>* tokens) {
  std::call_once(lead_flag_, [this] { FindLead(); });
  return SplitBehindLead(text, tokens);
}

std::vector<uint32_t> TextSplitter::SplitForced(std::span<const uint32_t> before, std::string_view forced, bool ends) {
  before = before.last(std::min(before.size(), kContextTokens));
  if (const std::string_view whole = WholeCharacters(forced); whole.size() < forced.size()) {
    forced = whole;
    ends = false;
  }
  if (forced.empty()) return {};
  // A special token is not part of the text; behind it the tokenizer starts again.
  for (size_t at = before.size(); at-- > 0;)
    if (vocabulary_.IsSpecial(before[at])) {
      before = before.subspan(at + 1);
      break;
    }
  std::string key{static_cast<char>(before.size()), ends ? '1' : '0'};
  key.append(reinterpret_cast<const char*>(before.data()), before.size_bytes());
  key += forced;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
  }
  std::vector<uint32_t> result = Compute(before, forced, ends);
  std::lock_guard<std::mutex> lock(mutex_);
  if (known_.size() >= kKnownSplits) known_.clear();
  return known_.emplace(std::move(key), std::move(result)).first->second;
}

std::vector<uint32_t> TextSplitter::Compute(std::span<const uint32_t> before, std::string_view forced, bool ends) {
  // A context may begin inside a piece of the tokenizer. It is long enough once the tokenizer reproduces the answer's tokens.
  for (size_t count = before.size();; count--) {
    const std::span<const uint32_t> context = before.last(count);
    std::string text;
    for (uint32_t token : context) text += vocabulary_.Bytes(token);
    const size_t context_bytes = text.size();
    text += forced;
    std::vector<uint32_t> tokens;
    if (Split(text, &tokens) && tokens.size() >= count && std::equal(context.begin(), context.end(), tokens.begin())) {
      if (!ends) tokens.resize(std::max(count, CountStable(text, context_bytes, tokens)));
      tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count));
      return tokens;
    }
    if (count <= 1) return {};
  }
}

size_t TextSplitter::CountStable(const std::string& text, size_t context, const std::vector<uint32_t>& tokens) {
  size_t stable = tokens.size();
  std::vector<uint32_t> others;
  const auto compare = [&](const std::string& other) {
    if (!Split(other, &others)) {
      stable = 0;
      return;
    }
    const size_t most = std::min(stable, others.size());
    stable = static_cast<size_t>(std::mismatch(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(most), others.begin()).first - tokens.begin());
  };
  // Places at which a token may begin that covers the end and more: the text before each is compared as a separate text.
  const size_t first = std::max(context, text.size() - std::min(text.size(), kOpenBytes));
  std::set<size_t> cuts;
  for (size_t at = first; at < text.size(); at++)
    if (vocabulary_.HasLonger(std::string_view(text).substr(at))) AddCuts(text, context, at, &cuts);
  for (const size_t cut : cuts)
    if (stable > 0) compare(text.substr(0, cut));
  for (std::string_view probe : kProbes)
    if (stable > 0) compare(text + std::string(probe));
  return stable;
}

void TextSplitter::AddCuts(std::string_view text, size_t context, size_t at, std::set<size_t>* cuts) const {
  if (!IsInsideCharacter(text, at)) {
    cuts->insert(at);
    return;
  }
  const size_t first = std::max(context, at - std::min(at, kBrokenBytes));
  for (size_t begin = first; begin < at; begin++)
    if (vocabulary_.HasToken(text.substr(begin, at - begin))) AddCuts(text, context, begin, cuts);
}

}  // namespace onpolicy::grammar
