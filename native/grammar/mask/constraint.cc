// A constraint's states as its matchers see them: tokens accepted, ends, forced text.
#include "grammar/mask/constraint.h"

#include <algorithm>
#include <atomic>

namespace onpolicy::grammar {

static std::atomic<uint32_t> last_serial{0};

Constraint::Constraint(std::shared_ptr<const Vocabulary> vocabulary, std::shared_ptr<Grammar> grammar, Symbol start,
                       std::vector<Warning> warnings)
    : vocabulary_(std::move(vocabulary)), grammar_(std::move(grammar)), warnings_(std::move(warnings)),
      states_(*grammar_), limits_(*grammar_),
      has_token_limits_(grammar_->has_token_limits()), masks_(*vocabulary_, *grammar_, states_), serial_(++last_serial) {
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
  std::shared_lock lock(mutex_);
  return MayEnd(states_.Configs(state));
}

Constraint::TokenStart Constraint::StartOf(StateId state) {
  if (!has_token_limits_) return {state, state};
  {
    std::shared_lock lock(mutex_);
    if (const auto known = starts_.find(state); known != starts_.end()) return known->second;
  }
  std::lock_guard lock(mutex_);
  return MakeStart(state);
}

Constraint::TokenStart Constraint::MakeStart(StateId state) {
  if (!has_token_limits_) return {state, state};
  if (const auto known = starts_.find(state); known != starts_.end()) return known->second;
  std::vector<Config> spent = limits_.Spend(std::vector<Config>(states_.Configs(state)));
  std::vector<Config> unlimited = limits_.Lift(spent);
  return starts_[state] = {states_.Intern(&spent), states_.Intern(&unlimited)};
}

bool Constraint::IsFinal(StateId state) {
  const StateId start = StartOf(state).unlimited;
  std::shared_lock lock(mutex_);
  const std::vector<Config>& configs = states_.Configs(start);
  return configs.size() == 1 && configs[0].node == kEpsilon;
}

bool Constraint::Accept(StateId state, uint32_t token, MatchedText& text, StateId* next) {
  if (token >= vocabulary_->size()) return false;
  const uint64_t move = PairKey(state, token);
  {
    std::shared_lock lock(mutex_);
    if (vocabulary_->IsEos(token) && MayEnd(states_.Configs(state))) {
      *next = ended_;
      return true;
    }
    if (const StateId known = moves_.Find(move); known != HashIndex::kNone) {
      text.append(vocabulary_->Bytes(token));
      *next = known;
      return true;
    }
  }
  std::lock_guard lock(mutex_);
  const uint64_t reads = grammar_->text_reads();
  const size_t base = text.size();
  std::vector<Config> result = ConfigsAfter(MakeStart(state).spent, token, text);
  if (result.empty()) {
    text.Shorten(base);
    return false;
  }
  *next = states_.Intern(&result);
  if (reads == grammar_->text_reads() && moves_.size() < kKnownMoves) moves_.Add(move, *next);
  return true;
}

// Returns the parses after a token. Appends the token's bytes to `text`.
std::vector<Config> Constraint::ConfigsAfter(StateId state, uint32_t token, MatchedText& text) {
  grammar_->regex().BeginStep(Budget::kUnbounded);
  const std::vector<Config> start = states_.Configs(state);
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
  text.Shorten(base);
  text.append(vocabulary_->Bytes(token));
  states_.StepToken(start, token, text, &result);
  return result;
}

std::string Constraint::ForcedBytes(StateId state, MatchedText& text, size_t limit, bool* ends) {
  const auto take = [&](const Forced& forced) {
    *ends = forced.ends && forced.bytes.size() <= limit;
    return forced.bytes.substr(0, limit);
  };
  state = StartOf(state).unlimited;
  {
    std::shared_lock lock(mutex_);
    if (const auto known = forced_.find(state); known != forced_.end()) return take(known->second);
  }
  std::lock_guard lock(mutex_);
  const uint64_t reads = grammar_->text_reads();
  const Forced forced = ForcedFrom(state, text, limit);
  const bool is_whole = forced.bytes.size() < limit && !grammar_->regex().budget().IsSpent(Phase::kStep);
  if (is_whole && reads == grammar_->text_reads() && forced_.size() < kKnownForced) forced_.emplace(state, forced);
  return take(forced);
}

// `text` is unchanged when it returns.
Constraint::Forced Constraint::ForcedFrom(StateId state, MatchedText& text, size_t limit) {
  RegexPool& regex = grammar_->regex();
  regex.BeginStep(limits::kForcedWork);
  const size_t base = text.size();
  std::vector<Config> current = states_.Configs(state), following;
  Forced forced;
  while (text.size() - base < limit && !current.empty()) {
    forced.ends = current.size() == 1 && current[0].node == kEpsilon;
    // A text that is limited in tokens may end before the next byte, at the end of a token.
    const auto is_text = [&](const Config& config) {
      return !(config.node & kTokenSetBit) && config.node != kEpsilon && !(has_token_limits_ && limits_.IsLimited(config));
    };
    if (!std::all_of(current.begin(), current.end(), is_text)) break;
    ByteSet first;
    for (const Config& config : current) first = first | regex.FirstBytes(config.node);
    if (first.Count() != 1 || regex.budget().IsSpent(Phase::kStep)) break;
    uint8_t byte = 0;
    first.ForEach([&](unsigned only) { byte = static_cast<uint8_t>(only); });
    text.push_back(static_cast<char>(byte));
    following.clear();
    states_.Step(current, byte, text, &following);
    if (following.empty()) {
      text.pop_back();
      break;
    }
    current.swap(following);
  }
  forced.bytes = text.view().substr(base);
  text.Shorten(base);
  return forced;
}

bool Constraint::AllowNamedTokens(StateId state, uint32_t* mask) const {
  const auto is_set = [&](uint32_t token) { return (mask[token >> 5] >> (token & 31)) & 1; };
  const auto set = [&](uint32_t token) { mask[token >> 5] |= 1u << (token & 31); };
  bool has_named = false;
  for (const Config& config : states_.Configs(state)) {
    if (!(config.node & kTokenSetBit)) continue;
    has_named = true;
    const TokenSet& named = grammar_->TokensOf(config.node & ~kTokenSetBit);
    if (!named.inverted) {
      for (uint32_t token : named.tokens)
        if (token < vocabulary_->size()) set(token);
      continue;
    }
    // All tokens except the named ones and the ends; ends that another parse allows stay.
    std::vector<uint32_t> others = named.tokens;
    others.insert(others.end(), vocabulary_->eos_tokens().begin(), vocabulary_->eos_tokens().end());
    std::erase_if(others, [&](uint32_t token) { return token >= vocabulary_->size() || is_set(token); });
    std::fill_n(mask, vocabulary_->mask_words(), ~0u);
    if (const uint32_t rest = vocabulary_->size() % 32) mask[vocabulary_->size() / 32] = (1u << rest) - 1;
    for (uint32_t token : others) mask[token >> 5] &= ~(1u << (token & 31));
  }
  return has_named;
}

bool Constraint::FillMask(StateId state, MatchedText& text, uint32_t* mask, bool* is_cut) {
  is_asked_ = true;
  const StateId start = StartOf(state).unlimited;
  {
    std::shared_lock lock(mutex_);
    if (masks_.WriteKnown(start, mask)) {
      *is_cut = false;
      return Complete(start, mask);
    }
  }
  std::lock_guard lock(mutex_);
  *is_cut = !masks_.Write(start, text, mask);
  cut_masks += *is_cut;
  return Complete(start, mask);
}

bool Constraint::Complete(StateId state, uint32_t* mask) const {
  const bool complete = state == ended_ || MayEnd(states_.Configs(state));
  const bool has_named = AllowNamedTokens(state, mask);
  if (complete)
    for (uint32_t token : vocabulary_->eos_tokens())
      if (token < vocabulary_->size()) mask[token >> 5] |= 1u << (token & 31);
  if (!has_named && !complete) return false;
  const uint32_t whole = vocabulary_->size() / 32, rest = vocabulary_->size() % 32;
  return std::all_of(mask, mask + whole, [](uint32_t bits) { return bits == ~0u; }) &&
         (rest == 0 || (mask[whole] | (~0u << rest)) == ~0u);
}

}  // namespace onpolicy::grammar
