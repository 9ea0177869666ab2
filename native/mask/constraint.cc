// A constraint's states as its matchers see them: tokens accepted, ends, forced text.
#include "mask/constraint.h"

namespace onpolicy::grammar {

// What the search for forced text may cost: some 2 ms.
static constexpr uint64_t kForcedWork = 200'000;

Constraint::Constraint(std::shared_ptr<const Vocabulary> vocabulary, std::shared_ptr<Grammar> grammar, Symbol start,
                       std::vector<std::string> warnings)
    : vocabulary_(std::move(vocabulary)), grammar_(std::move(grammar)), warnings_(std::move(warnings)),
      states_(*grammar_), reach_(grammar_->regex()), walk_(*vocabulary_, *grammar_, states_, reach_),
      repeats_(*vocabulary_, states_) {
  ended_ = states_.Intern(std::vector<Config>{});
  start_ = states_.Intern(grammar_->Start(start));
}

bool Constraint::IsComplete(StateId state) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const Config& config : states_.Configs(state))
    if (config.node == kEpsilon) return true;
  return false;
}

bool Constraint::IsFinal(StateId state) {
  std::lock_guard<std::mutex> lock(mutex_);
  const std::vector<Config>& configs = states_.Configs(state);
  return configs.size() == 1 && configs[0].node == kEpsilon;
}

bool Constraint::Accept(StateId state, uint32_t token, std::string& text, StateId* next) {
  if (token >= vocabulary_->size()) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  grammar_->regex().SearchUntil(UINT64_MAX);
  const std::vector<Config> start = states_.Configs(state);
  if (vocabulary_->IsEos(token)) {
    for (const Config& config : start)
      if (config.node == kEpsilon) {
        *next = ended_;
        return true;
      }
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
  *next = states_.Intern(std::move(result));
  return true;
}

std::string Constraint::ForcedBytes(StateId state, std::string text, size_t limit, bool* ends) {
  std::lock_guard<std::mutex> lock(mutex_);
  RegexPool& regex = grammar_->regex();
  regex.SearchUntil(regex.work() + kForcedWork);
  std::vector<Config> current = states_.Configs(state), following;
  std::string forced;
  while (forced.size() < limit && !current.empty()) {
    ByteSet first;
    *ends = current.size() == 1 && current[0].node == kEpsilon;
    for (const Config& config : current) {
      if ((config.node & kTokenSetBit) || config.node == kEpsilon) return forced;
      first = first | regex.FirstBytes(config.node);
    }
    if (first.Count() != 1 || regex.IsStopped()) return forced;
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

}  // namespace onpolicy::grammar
