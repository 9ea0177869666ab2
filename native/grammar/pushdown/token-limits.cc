// Limits are symbols on the stack of a parse: each change makes another stack.
#include "grammar/pushdown/token-limits.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace onpolicy::grammar {

bool TokenLimits::IsLimited(const Config& parse) const {
  const std::vector<Branch>& branches = grammar_.stacks().branches(parse.stack);
  return std::any_of(branches.begin(), branches.end(),
                     [&](const Branch& branch) { return grammar_.TokensLeftOf(branch.sequence).has_value(); });
}

template <typename Change>
std::vector<Config> TokenLimits::WithLimits(const std::vector<Config>& parses, const Change& change) {
  std::vector<Config> result;
  for (const Config& parse : parses) {
    if (!IsLimited(parse)) {
      result.push_back(parse);
      continue;
    }
    std::vector<Branch> branches;
    // The larger of two limits with the same continuation allows all that the smaller one does.
    std::map<std::tuple<uint32_t, SequenceId, StackId>, uint32_t> limits;
    for (const Branch& branch : grammar_.stacks().branches(parse.stack)) {
      if (const std::optional<uint32_t> left = grammar_.TokensLeftOf(branch.sequence)) {
        const std::optional<uint32_t> changed = change(parse.node, *left);
        if (!changed) continue;
        uint32_t& most = limits[{branch.tag, grammar_.sequence(branch.sequence).rest, branch.parent}];
        most = std::max(most, *changed);
      } else {
        branches.push_back(branch);
      }
    }
    for (const auto& [place, left] : limits) {
      const auto& [tag, rest, parent] = place;
      branches.push_back({tag, grammar_.Prepend(grammar_.TokensLeft(left), rest), parent});
    }
    if (branches.empty()) continue;
    grammar_.stacks().subsumption().BeginClosure();
    result.push_back({parse.node, grammar_.stacks().Intern(&branches)});
  }
  return result;
}

std::vector<Config> TokenLimits::Spend(const std::vector<Config>& parses) {
  return WithLimits(parses, [&](NodeId node, uint32_t left) -> std::optional<uint32_t> {
    if (left > 0) return left - 1;
    return grammar_.regex().IsAccepting(node) ? std::nullopt : std::optional(left);
  });
}

std::vector<Config> TokenLimits::Lift(const std::vector<Config>& parses) {
  return WithLimits(parses, [](NodeId, uint32_t) { return std::optional(kUnlimited); });
}

}  // namespace onpolicy::grammar
