// Breadth-first over the automaton, code point by code point.
#include "grammar/mask/text-reach.h"

#include <algorithm>
#include <unordered_set>

namespace onpolicy::grammar {

// Bytes that may follow inside one code point of a class, as pairs of ranges after each lead byte.
struct CodePointPath {
  ByteSet lead;
  ByteSet second;
  unsigned more;  // continuation bytes after the second
};

static const std::vector<CodePointPath>& PathsOf(SliceClass kind) {
  static const std::vector<std::vector<CodePointPath>> paths = [] {
    const ByteSet lower = ByteSet::Range('a', 'z'), continuation = ByteSet::Range(0x80, 0xBF);
    const ByteSet identifier = lower | ByteSet::Range('A', 'Z') | ByteSet::Range('0', '9') | ByteSet::Of("_");
    const ByteSet printable = ByteSet::Range(0x20, 0x7E) & ~ByteSet::Of("\"\\");
    std::vector<CodePointPath> unicode{
        {printable, {}, 0},
        {ByteSet::Range(0xC2, 0xDF), continuation, 0},
        {ByteSet::Range(0xE0, 0xE0), ByteSet::Range(0xA0, 0xBF), 1},
        {ByteSet::Range(0xE1, 0xEC) | ByteSet::Range(0xEE, 0xEF), continuation, 1},
        {ByteSet::Range(0xED, 0xED), ByteSet::Range(0x80, 0x9F), 1},
        {ByteSet::Range(0xF0, 0xF0), ByteSet::Range(0x90, 0xBF), 2},
        {ByteSet::Range(0xF1, 0xF3), continuation, 2},
        {ByteSet::Range(0xF4, 0xF4), ByteSet::Range(0x80, 0x8F), 2}};
    return std::vector<std::vector<CodePointPath>>{
        {{lower, {}, 0}}, {{identifier, {}, 0}}, {{printable, {}, 0}}, std::move(unicode)};
  }();
  return paths[static_cast<size_t>(kind)];
}

bool TextReach::Advance(const std::vector<NodeId>& from, const ByteSet& bytes, std::vector<NodeId>* to) {
  for (NodeId state : from) {
    if (budget_.IsSpent(Phase::kLook)) return false;
    NodeId last = kNothing;
    bool alive = true;
    bytes.ForEach([&](unsigned byte) {
      const NodeId next = alive ? regex_.Next(state, static_cast<uint8_t>(byte)) : kNothing;
      alive = next != kNothing;
      if (next == last || !alive) return;
      last = next;
      if (std::find(to->begin(), to->end(), last) == to->end()) to->push_back(last);
    });
    if (!alive) return false;
  }
  return true;
}

uint16_t TextReach::Reach(NodeId node, SliceClass kind) {
  const uint16_t known = reach_.try_emplace(node).first->second.depth[static_cast<size_t>(kind)];
  if (known != kUnknownReach) return known;
  budget_.Begin(Phase::kLook, limits::kLookWork, Phase::kMask);
  std::vector<NodeId> level{node}, seen{node};
  std::unordered_set<NodeId> known_states{node};
  const ByteSet continuation = ByteSet::Range(0x80, 0xBF);
  bool alive = true;
  uint16_t length = 0;
  for (; alive && !level.empty() && length < limits::kReachLength && seen.size() < limits::kReachStates; length++) {
    std::vector<NodeId> next;
    for (const CodePointPath& path : PathsOf(kind)) {
      std::vector<NodeId> leads, tails;
      alive = Advance(level, path.lead, &leads);
      if (alive && !path.second.IsEmpty()) {
        alive = Advance(leads, path.second, &tails);
        for (unsigned more = 0; alive && more < path.more; more++) {
          std::vector<NodeId> deeper;
          alive = Advance(tails, continuation, &deeper);
          tails = std::move(deeper);
        }
        leads = std::move(tails);
      }
      if (!alive || leads.size() > limits::kReachLevelStates) {
        alive = false;
        break;
      }
      for (NodeId state : leads)
        if (std::find(next.begin(), next.end(), state) == next.end()) next.push_back(state);
    }
    if (!alive) break;
    level.clear();
    for (NodeId state : next)
      if (known_states.insert(state).second) {
        seen.push_back(state);
        level.push_back(state);
      }
  }
  const bool endless = alive && level.empty();
  // Every state on an endless path is endless too.
  for (NodeId state : seen)
    if (endless) reach_.try_emplace(state).first->second.depth[static_cast<size_t>(kind)] = kEndless;
  if (IsSpent()) return length;
  return reach_[node].depth[static_cast<size_t>(kind)] = endless ? kEndless : length;
}

bool TextReach::TakesAlike(NodeId node, uint8_t byte) {
  const uint8_t* const kind = std::find(std::begin(kAlikeFirst), std::end(kAlikeFirst), byte);
  if (kind == std::end(kAlikeFirst)) return true;
  const size_t index = static_cast<size_t>(kind - kAlikeFirst);
  const uint8_t known_bit = static_cast<uint8_t>(1u << (2 * index)), alike_bit = static_cast<uint8_t>(2u << (2 * index));
  if (const uint8_t known = alike_.Reach(node); known & known_bit) return known & alike_bit;
  const NodeId entry = regex_.Entry(node, byte);
  bool is_alike = true;
  for (unsigned other = byte; is_alike && other <= kAlikeLast[index]; other++)
    is_alike = regex_.Entry(node, static_cast<uint8_t>(other)) == entry;
  // If no byte is taken, RegexPool::Unstick may still allow some.
  if (!IsSpent() && !(is_alike && entry == kNothing)) alike_[node] = static_cast<uint8_t>(alike_[node] | known_bit | (is_alike ? alike_bit : 0));
  return is_alike;
}

}  // namespace onpolicy::grammar
