// Breadth-first over the automaton, code point by code point.
#include "mask/text-reach.h"

#include <algorithm>
#include <unordered_set>

namespace onpolicy::grammar {

// Marks a known entry of `loops_`; no class of text has it.
static constexpr TextClasses kKnownLoops = 1u << 31;

// Bytes that may follow inside one code point of a class, as pairs of ranges after each lead byte.
struct CodePointPath {
  ByteSet lead;
  ByteSet second;
  unsigned more;  // continuation bytes after the second
};

static const std::vector<CodePointPath>& WidePaths() {
  static const ByteSet continuation = ByteSet::Range(0x80, 0xBF);
  static const std::vector<CodePointPath> paths{
      {ByteSet::Range(0xC2, 0xDF), continuation, 0},
      {ByteSet::Range(0xE0, 0xE0), ByteSet::Range(0xA0, 0xBF), 1},
      {ByteSet::Range(0xE1, 0xEC) | ByteSet::Range(0xEE, 0xEF), continuation, 1},
      {ByteSet::Range(0xED, 0xED), ByteSet::Range(0x80, 0x9F), 1},
      {ByteSet::Range(0xF0, 0xF0), ByteSet::Range(0x90, 0xBF), 2},
      {ByteSet::Range(0xF1, 0xF3), continuation, 2},
      {ByteSet::Range(0xF4, 0xF4), ByteSet::Range(0x80, 0x8F), 2}};
  return paths;
}

static const std::vector<CodePointPath>& PathsOf(SliceClass kind) {
  static const std::vector<std::vector<CodePointPath>> paths = [] {
    const ByteSet lower = ByteSet::Range('a', 'z');
    const ByteSet identifier = lower | ByteSet::Range('A', 'Z') | ByteSet::Range('0', '9') | ByteSet::Of("_");
    const ByteSet printable = ByteSet::Range(0x20, 0x7E) & ~ByteSet::Of("\"\\");
    std::vector<CodePointPath> unicode{{printable, {}, 0}};
    unicode.insert(unicode.end(), WidePaths().begin(), WidePaths().end());
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
  // Everything seen on an endless way is endless too.
  for (NodeId state : seen)
    if (endless) reach_.try_emplace(state).first->second.depth[static_cast<size_t>(kind)] = kEndless;
  if (IsSpent()) return length;
  return reach_[node].depth[static_cast<size_t>(kind)] = endless ? kEndless : length;
}

TextClasses TextReach::FindLoops(NodeId node) {
  const std::array<TextClasses, 128>& kinds = AsciiClasses();
  TextClasses leaving = 0;
  for (unsigned byte = 0; byte < 128; byte++)
    leaving |= regex_.Next(node, static_cast<uint8_t>(byte)) != node ? kinds[byte] : 0;
  if (loops_.size() <= node) loops_.resize(std::max<size_t>(regex_.size(), node + 1), 0);
  return loops_[node] = (~leaving & ~(kWideText | kBrokenText)) | kKnownLoops;
}

bool TextReach::LoopsOverWide(NodeId node) {
  if (const Known known = wide_.Reach(node); known != Known::kUnasked) return known == Known::kYes;
  budget_.Begin(Phase::kLook, limits::kLookWork, Phase::kMask);
  const std::vector<NodeId> start{node};
  // Most states that leave do so on any code point: this one is é.
  bool wide = regex_.Next(regex_.Next(node, 0xC3), 0xA9) == node;
  for (const CodePointPath& path : WidePaths()) {
    std::vector<NodeId> level;
    wide = wide && Advance(start, path.lead, &level);
    for (unsigned rest = 0; wide && rest <= path.more; rest++) {
      for (NodeId state : level) wide = wide && !regex_.IsAccepting(state);
      std::vector<NodeId> next;
      wide = wide && level.size() < 20 &&
             Advance(level, rest == 0 ? path.second : ByteSet::Range(0x80, 0xBF), &next);
      level = std::move(next);
    }
    wide = wide && level == start;
    if (!wide) break;
  }
  if (!IsSpent()) wide_[node] = wide ? Known::kYes : Known::kNo;
  return wide;
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
  // Where nothing is taken, RegexPool::Unstick may still allow some of them.
  if (!IsSpent() && !(is_alike && entry == kNothing)) alike_[node] = static_cast<uint8_t>(alike_[node] | known_bit | (is_alike ? alike_bit : 0));
  return is_alike;
}

bool TextReach::IsInsideString(NodeId node) {
  if (auto known = inside_string_.find(node); known != inside_string_.end()) return known->second;
  static const ByteSet plain = [] {
    ByteSet set = ByteSet::Range(0x20, 0xFF), quoted;
    quoted.Add('"');
    quoted.Add('\\');
    return set & ~quoted;
  }();
  budget_.Begin(Phase::kLook, limits::kLookWork, Phase::kMask);
  std::vector<NodeId> seen;
  std::unordered_set<NodeId> known_states;
  bool inside = true;
  const auto follow = [&](NodeId state) {
    NodeId last = kNothing;
    plain.ForEach([&](unsigned byte) {
      const NodeId entry = inside ? regex_.Entry(state, static_cast<uint8_t>(byte)) : kNothing;
      if (entry == last || entry == kNothing) return;
      last = entry;
      inside = inside && !(entry & kAcceptBit);
      if (inside && known_states.insert(entry).second) seen.push_back(entry);
    });
  };
  const auto takes_control = [&](NodeId state) {
    for (unsigned byte = 0; byte < 0x20; byte++)
      if (regex_.Next(state, static_cast<uint8_t>(byte)) != kNothing) return true;
    return false;
  };
  follow(node);
  for (size_t i = 0; inside && i < seen.size(); i++) {
    inside = seen.size() < limits::kStringStates && !budget_.IsSpent(Phase::kLook) && !takes_control(seen[i]);
    if (inside) follow(seen[i]);
  }
  if (inside)
    for (NodeId state : seen) inside_string_.emplace(state, true);
  if (!IsSpent()) inside_string_[node] = inside;
  return inside;
}

}  // namespace onpolicy::grammar
