#include "sampler/bad-texts.h"

#include <algorithm>
#include <numeric>

namespace onpolicy {

TokenTexts::TokenTexts(std::string bytes, std::vector<uint32_t> offsets)
    : bytes_(std::move(bytes)), offsets_(std::move(offsets)), sorted_(offsets_.size() - 1) {
  std::iota(sorted_.begin(), sorted_.end(), 0);
  std::sort(sorted_.begin(), sorted_.end(), [this](int32_t a, int32_t b) { return Of(a) < Of(b); });
}

TokenTexts::Range TokenTexts::BeginningWith(std::string_view prefix) const {
  const auto beginning = [&](int32_t token) { return Of(token).substr(0, prefix.size()); };
  const auto from = std::partition_point(sorted_.begin(), sorted_.end(), [&](int32_t token) { return beginning(token) < prefix; });
  const auto to = std::partition_point(from, sorted_.end(), [&](int32_t token) { return beginning(token) == prefix; });
  return {static_cast<uint32_t>(from - sorted_.begin()), static_cast<uint32_t>(to - sorted_.begin())};
}

BadTexts::BadTexts(std::shared_ptr<const TokenTexts> tokens, std::vector<std::string> texts)
    : tokens_(std::move(tokens)), nodes_(1) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  for (const std::string& text : texts) Add(text);
  for (const auto& [byte, next] : nodes_[0].next) first_[byte] = next;
  Link();
  for (int32_t token = 0; token < static_cast<int32_t>(tokens_->size()); ++token) {
    uint32_t state = 0;
    if (EndsIn(token, &state)) always_.push_back(token);
  }
}

void BadTexts::Add(const std::string& text) {
  uint32_t node = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (at > 0)
      if (const TokenTexts::Range range = tokens_->BeginningWith(std::string_view(text).substr(at)); range.from < range.to)
        nodes_[node].completions.push_back(range);
    const auto [found, is_new] =
        nodes_[node].next.emplace(static_cast<uint8_t>(text[at]), static_cast<uint32_t>(nodes_.size()));
    node = found->second;
    if (is_new) nodes_.emplace_back();
  }
  nodes_[node].ends = true;
}

// Breadth first, so that the node of a shorter end is complete before the nodes that need it.
void BadTexts::Link() {
  std::vector<uint32_t> queue = {0};
  for (size_t at = 0; at < queue.size(); ++at) {
    const uint32_t node = queue[at];
    for (const auto& [byte, next] : nodes_[node].next) {
      nodes_[next].shorter = node == 0 ? 0 : Next(nodes_[node].shorter, byte);
      nodes_[next].ends = nodes_[next].ends || nodes_[nodes_[next].shorter].ends;
      queue.push_back(next);
    }
  }
}

uint32_t BadTexts::Next(uint32_t state, uint8_t byte) const {
  for (; state != 0; state = nodes_[state].shorter)
    if (const auto found = nodes_[state].next.find(byte); found != nodes_[state].next.end()) return found->second;
  return first_[byte];
}

uint32_t BadTexts::After(uint32_t state, int32_t token) const {
  for (const char byte : tokens_->Of(token)) state = Next(state, static_cast<uint8_t>(byte));
  return state;
}

bool BadTexts::EndsIn(int32_t token, uint32_t* state) const {
  bool ends = false;
  for (const char byte : tokens_->Of(token)) {
    *state = Next(*state, static_cast<uint8_t>(byte));
    ends = ends || nodes_[*state].ends;
  }
  return ends;
}

}  // namespace onpolicy
