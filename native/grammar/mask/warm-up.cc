// A constraint -> the masks that its texts meet first, computed in advance. Stops when a matcher asks for a mask.
#include <deque>
#include <unordered_set>

#include "grammar/mask/constraint.h"

namespace onpolicy::grammar {

// Bytes behind which the tokens of a JSON text often end.
static constexpr std::string_view kMilestones = "{[,:\"";
static constexpr std::string_view kSkipped = " \t\n\r\\";
// A state that takes more bytes than this is inside free text: only the end of that text is followed.
static constexpr unsigned kFreeText = 60;

size_t Constraint::WarmUp() {
  struct Place {
    StateId state;
    MatchedText text;  // a shortest text that leads there
  };
  std::deque<Place> open{{start_, {}}};
  std::unordered_set<StateId> known{start_};
  std::vector<uint32_t> mask(vocabulary_->mask_words());
  size_t masks = 0;
  const Budget& budget = grammar_->regex().budget();
  uint64_t end = 0;
  while (!open.empty()) {
    Place place = std::move(open.front());
    open.pop_front();
    std::lock_guard lock(mutex_);
    if (is_asked_) break;
    if (end == 0) end = budget.EndOf(limits::kWarmWork);
    if (budget.spent() > end || masks == limits::kWarmMasks) break;
    if (place.text.empty() || kMilestones.find(place.text.back()) != std::string_view::npos) {
      masks_.Write(MakeStart(place.state).unlimited, place.text, mask.data());
      masks++;
    }
    ByteSet next;
    for (const Config& config : states_.Configs(place.state))
      if (!(config.node & kTokenSetBit) && config.node != kEpsilon) next = next | grammar_->regex().FirstBytes(config.node);
    if (next.Count() > kFreeText) next = next & ByteSet::Range('"', '"');
    (next & ByteSet::Range(0, 0x7E)).ForEach([&](unsigned byte) {
      if (kSkipped.find(static_cast<char>(byte)) != std::string_view::npos) return;
      bool on_text = false;
      const StateId state = states_.Follow(place.state, static_cast<uint8_t>(byte), place.text, &on_text);
      if (state == kDeadState || !known.insert(state).second) return;
      open.push_back({state, place.text});
      open.back().text.push_back(static_cast<char>(byte));
    });
  }
  return masks;
}

}  // namespace onpolicy::grammar
