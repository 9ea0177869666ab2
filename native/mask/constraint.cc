// A constraint's states as its matchers see them: tokens accepted, ends, forced text.
#include "mask/constraint.h"

#include <algorithm>
#include <atomic>

namespace onpolicy::grammar {

static std::atomic<uint32_t> last_serial{0};

Constraint::Constraint(std::shared_ptr<const Vocabulary> vocabulary, std::shared_ptr<Grammar> grammar, Symbol start,
                       std::vector<Warning> warnings)
    : vocabulary_(std::move(vocabulary)), grammar_(std::move(grammar)), warnings_(std::move(warnings)),
      states_(*grammar_), masks_(*vocabulary_, *grammar_, states_), serial_(++last_serial) {
  std::vector<Config> none, first = grammar_->Start(start);
  ended_ = states_.Intern(&none);
  start_ = states_.Intern(&first);
}

static std::atomic<uint64_t> cut_masks{0};

uint64_t Constraint::CutMasks() { return cut_masks; }

static bool MayEnd(const std::vector<Config>& configs) {
  return std::any_of(configs.begin(), configs.end(), [](const Config& config) { return config.node == kEpsilon; });
}

bool Constraint::IsComplete(StateId state) {
  std::lock_guard<std::mutex> lock(mutex_);
  return MayEnd(states_.Configs(state));
}

bool Constraint::IsFinal(StateId state) {
  std::lock_guard<std::mutex> lock(mutex_);
  const std::vector<Config>& configs = states_.Configs(state);
  return configs.size() == 1 && configs[0].node == kEpsilon;
}

bool Constraint::Accept(StateId state, uint32_t token, std::string& text, StateId* next) {
  if (token >= vocabulary_->size()) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  grammar_->regex().BeginStep(Budget::kUnbounded);
  const std::vector<Config> start = states_.Configs(state);
  if (vocabulary_->IsEos(token) && MayEnd(start)) {
    *next = ended_;
    return true;
  }
  const size_t base = text.size();
  std::vector<Config> result;
  if (!vocabulary_->IsSpecial(token)) {
    std::vector<Config> current = start, following;
    for (char byte : vocabulary_->Bytes(token)) {
      text.push_back(byte);
      following.clear();
      states_.Step(current, static_cast<uint8_t>(byte), text, &following);
      current.swap(following);
      if (current.empty()) break;
    }
    if (text.size() > base) result = std::move(current);
  }
  text.resize(base);
  text += vocabulary_->Bytes(token);
  states_.StepToken(start, token, text, &result);
  if (result.empty()) {
    text.resize(base);
    return false;
  }
  *next = states_.Intern(&result);
  return true;
}

std::string Constraint::ForcedBytes(StateId state, std::string text, size_t limit, bool* ends) {
  std::lock_guard<std::mutex> lock(mutex_);
  RegexPool& regex = grammar_->regex();
  regex.BeginStep(limits::kForcedWork);
  std::vector<Config> current = states_.Configs(state), following;
  std::string forced;
  while (forced.size() < limit && !current.empty()) {
    ByteSet first;
    *ends = current.size() == 1 && current[0].node == kEpsilon;
    for (const Config& config : current) {
      if ((config.node & kTokenSetBit) || config.node == kEpsilon) return forced;
      first = first | regex.FirstBytes(config.node);
    }
    if (first.Count() != 1 || regex.budget().IsSpent(Phase::kStep)) return forced;
    uint8_t byte = 0;
    first.ForEach([&](unsigned only) { byte = static_cast<uint8_t>(only); });
    text.push_back(static_cast<char>(byte));
    following.clear();
    states_.Step(current, byte, text, &following);
    if (following.empty()) return forced;
    forced.push_back(static_cast<char>(byte));
    current.swap(following);
  }
  return forced;
}

bool Constraint::AllowNamedTokens(StateId state, uint32_t* mask) const {
  bool has_named = false;
  for (const Config& config : states_.Configs(state)) {
    if (!(config.node & kTokenSetBit)) continue;
    has_named = true;
    const TokenSet& set = grammar_->TokensOf(config.node & ~kTokenSetBit);
    if (!set.inverted) {
      for (uint32_t token : set.tokens)
        if (token < vocabulary_->size()) mask[token >> 5] |= 1u << (token & 31);
    } else {
      for (uint32_t token = 0; token < vocabulary_->size(); token++)
        if (set.Has(token) && !vocabulary_->IsEos(token)) mask[token >> 5] |= 1u << (token & 31);
    }
  }
  return has_named;
}

bool Constraint::FillMask(StateId state, std::string& text, uint32_t* mask, bool* is_cut) {
  is_asked_ = true;
  std::lock_guard<std::mutex> lock(mutex_);
  *is_cut = !masks_.Write(state, text, mask);
  cut_masks += *is_cut;
  const bool complete = state == ended_ || MayEnd(states_.Configs(state));
  const bool has_named = AllowNamedTokens(state, mask);
  if (complete)
    for (uint32_t token : vocabulary_->eos_tokens())
      if (token < vocabulary_->size()) mask[token >> 5] |= 1u << (token & 31);
  if (!has_named && !complete) return false;
  for (uint32_t token = 0; token < vocabulary_->size(); token++)
    if (!((mask[token >> 5] >> (token & 31)) & 1)) return false;
  return true;
}

}  // namespace onpolicy::grammar
